import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { now } from '../../lib/clock/deadline.js';
import { InFlight } from '../../lib/redis/connection/in-flight.js';
import { TimeWheel } from '../../lib/clock/time-wheel.js';
import { deferred } from '../support/deferred.js';

describe('Many due times on one timer', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it('a due time that was deleted costs nothing any more: locks of many lengths come and go', () => {
    const due: number[][] = [];
    const wheel = new TimeWheel<number>((items) => due.push(items));
    const start = Math.ceil(now());
    const times = Array.from({ length: 1000 }, (_, at) => at + 1);
    for (const time of times) wheel.add(start + time, time);
    for (const time of times.slice(0, -1)) wheel.delete(start + time, time);

    let turns = 0;
    for (; due.length === 0; turns++) jest.advanceTimersToNextTimer();
    expect(due).toEqual([[1000]]);
    // One for the first, which the timer was set to.
    expect(turns).toBeLessThanOrEqual(2);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('a due time stays as long as one of its items is left', () => {
    const due: number[][] = [];
    const wheel = new TimeWheel<number>((items) => due.push(items));
    const at = Math.ceil(now()) + 10;
    for (const item of [1, 2]) wheel.add(at, item);
    wheel.delete(at, 1);
    wheel.delete(at + 1, 2);
    jest.advanceTimersByTime(11);
    expect(due).toEqual([[2]]);
  });
});

describe('Fake timers of one test', () => {
  afterEach(() => void jest.useRealTimers());

  it('stop no due time of the next test', () => {
    const due: string[] = [];
    const wheel = new TimeWheel<string>((items) => due.push(...items));
    const items = new InFlight<{ name: string; startedAt: number; stalls: number }>(100, ({ name }) => due.push(name));
    for (const test of [1, 2]) {
      jest.useFakeTimers();
      const at = Math.ceil(now()) + 100;
      wheel.add(at, 'on the wheel');
      const item = { name: 'in flight', startedAt: 0, stalls: 0 };
      items.add(item);
      if (test === 2) jest.advanceTimersByTime(101);
      wheel.delete(at, 'on the wheel');
      items.delete(item);
      jest.useRealTimers();
    }
    expect(due.sort()).toEqual(['in flight', 'on the wheel']);
  });

  it('make no earlier due time late that comes when they are gone', async () => {
    const isDue = deferred();
    const wheel = new TimeWheel<string>((items) => items.includes('earlier') && isDue.resolve());
    wheel.add(Math.ceil(now()) + 50, 'earlier');
    jest.useFakeTimers();
    wheel.add(Math.ceil(now()) + 60_000, 'later');
    jest.useRealTimers();
    await isDue.promise;
  });

  it('make no earlier due time late: the next one that is added sees to both', () => {
    const due: string[] = [];
    const wheel = new TimeWheel<string>((items) => due.push(...items));
    wheel.add(Math.ceil(now()) + 100, 'earlier');
    jest.useFakeTimers();
    wheel.add(Math.ceil(now()) + 60_000, 'later');
    jest.advanceTimersByTime(59_000);
    expect(due).toEqual(['earlier']);
  });
});
