import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { Connection } from '../../lib/redis/connection/connection.js';
import { FenceFloor } from '../../lib/redis/locks/fence-floor.js';
import { bulk } from '../../lib/redis/wire/resp.js';

describe('A node of a quorum hears of the fences of the others', () => {
  const redis = { epoch: 0 };
  let sentAlone: string[];
  let floor: FenceFloor;

  beforeEach(() => {
    jest.useFakeTimers();
    redis.epoch = 0;
    sentAlone = [];
    floor = new FenceFloor(redis as Connection, true, () => sentAlone.push(floor.nextOperation(false)));
    // The first call of a connection brings the counter to the time of the server.
    expect(floor.nextOperation(false)).toContain('clock');
  });

  afterEach(() => {
    floor.close();
    jest.useRealTimers();
  });

  const raiseTo = (fence: number) => bulk('raise') + bulk('') + bulk(fence);

  it('a node is raised once to a fence of another node, by the next call or by one of its own after 10 ms', () => {
    floor.raise(7);
    expect(floor.nextOperation(false)).toBe(raiseTo(7));
    expect(floor.nextOperation(false)).toBe('');
    floor.raise(8);
    jest.advanceTimersByTime(10);
    expect(sentAlone).toEqual([raiseTo(8)]);
  });

  it('a node is not raised to a fence that it gave itself', () => {
    floor.gave(7);
    floor.raise(7);
    expect(floor.nextOperation(false)).toBe('');
    jest.advanceTimersByTime(20);
    expect(sentAlone).toEqual([]);
  });

  it('a node that gave a smaller fence is raised, and so is one that was replaced meanwhile', () => {
    floor.gave(6);
    floor.raise(7);
    expect(floor.nextOperation(false)).toBe(raiseTo(7));
    floor.gave(9);
    floor.raise(9);
    redis.epoch++;
    expect(floor.nextOperation(false)).toBe(bulk('clock') + bulk('') + bulk(9));
  });

  it('a node is asked nothing more while calls carry the fences, and each fence waits for 10 ms at most', () => {
    floor.raise(7);
    jest.advanceTimersByTime(8);
    expect(floor.nextOperation(false)).toBe(raiseTo(7));
    floor.raise(8);
    jest.advanceTimersByTime(9);
    expect(sentAlone).toEqual([]);
    jest.advanceTimersByTime(1);
    expect(sentAlone).toEqual([raiseTo(8)]);
  });
});
