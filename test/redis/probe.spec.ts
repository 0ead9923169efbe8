import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { Probe } from '../../lib/redis/connection/probe.js';

const COMMAND_TIMEOUT_MS = 300;

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** Starts a probe that gets no reply. Resolves with after how many time-outs it is given up. */
async function patienceOf(probe: Probe, givenUp: jest.Mock): Promise<number> {
  givenUp.mockClear();
  probe.start();
  const startedAt = performance.now();
  while (givenUp.mock.calls.length === 0) await jest.advanceTimersByTimeAsync(COMMAND_TIMEOUT_MS / 10);
  return Math.round((performance.now() - startedAt) / COMMAND_TIMEOUT_MS);
}

it('a connection gets twice the time of the one before, until a script has got its reply', async () => {
  const givenUp = jest.fn();
  const probe = new Probe(COMMAND_TIMEOUT_MS, { isSlow: () => undefined }, givenUp);
  for (const timeouts of [1, 2, 4]) expect(await patienceOf(probe, givenUp)).toBe(timeouts);
  probe.start();
  probe.succeeded();
  for (const timeouts of [1, 2]) expect(await patienceOf(probe, givenUp)).toBe(timeouts);
});
