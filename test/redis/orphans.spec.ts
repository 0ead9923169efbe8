import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Orphans } from '../../lib/redis/orphans.js';

describe('Locks that Redis may hold for us', () => {
  const lock = { keys: ['a'], token: 'a.1', leaseMs: 1000, sharing: 'exclusive', label: undefined } as const;

  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it('are not tried any more once the store is closed, also those of commands that its end cuts short', async () => {
    const release = jest.fn(async () => 0);
    const orphans = new Orphans(release);
    orphans.add(lock, 1);
    await orphans.close();
    expect(release).toHaveBeenCalledTimes(1);
    orphans.add(lock, 1);
    await orphans.reconnected();
    expect(jest.getTimerCount()).toBe(0);
    expect(release).toHaveBeenCalledTimes(1);
  });
});
