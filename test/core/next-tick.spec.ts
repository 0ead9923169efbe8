import { afterEach, it, jest } from '@jest/globals';

afterEach(() => void jest.useRealTimers());

/** Loads the file anew. */
const loaded = async (nth: string) =>
  ((await import(`../../lib/clock/next-tick.ts?${nth}`)) as typeof import('../../lib/clock/next-tick.js')).nextTick;

it.each([
  ['before', true, false],
  ['after', false, true],
  ['before and after', true, true],
])('the next tick comes when fake timers are there %s it is loaded', async (when, before, after) => {
  if (before) jest.useFakeTimers();
  const nextTick = await loaded(when);
  for (let nth = 0; nth < 3; nth++) await new Promise<void>((resolve) => nextTick(resolve));
  jest.useRealTimers();
  if (after) jest.useFakeTimers();
  for (let nth = 0; nth < 3; nth++) await new Promise<void>((resolve) => nextTick(resolve));
});
