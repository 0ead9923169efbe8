import { describe, expect, it } from '@jest/globals';
import { LockUnavailableError } from 'nest-redis-lock';
import type { Connection } from '../../lib/redis/connection/connection.js';
import { RestartGuard } from '../../lib/redis/durability/restart-guard.js';
import { turn } from '../support/deferred.js';

const YOUNG = 'run_id:one\r\nuptime_in_seconds:1\r\n';
const OLD = 'run_id:two\r\nuptime_in_seconds:3600\r\n';

describe('The guard of a master', () => {
  /** A connection that leads to another server each time: `INFO` of one after the other. */
  function guardOf(longestLeaseMs: number, ...servers: string[]) {
    const redis = { server: 'redis:6379', epoch: 0, command: async () => servers[redis.epoch] };
    const guard = new RestartGuard(redis as unknown as Connection, { longestLeaseMs, isOneServer: false });
    return { guard, failOver: () => void redis.epoch++ };
  }

  it('the guard of a master trusts a server that has been up for longer than the longest lease', async () => {
    const { guard } = guardOf(60_000, OLD);
    await guard.check();
    expect(guard.isOver).toBe(true);
  });

  it('the guard of a master does not trust a server that takes over from one that had just started', async () => {
    const { guard, failOver } = guardOf(60_000, YOUNG, OLD);
    await expect(guard.check()).rejects.toBeInstanceOf(LockUnavailableError);
    failOver();
    // It followed that one, so it may have forgotten the same locks.
    await expect(guard.check()).rejects.toHaveProperty('detail', expect.stringMatching(/for another (59|60) s/));
    expect(guard.isOver).toBe(false);
  });

  it('the guard of a master asks a server as soon as it is connected to it', async () => {
    const { guard, failOver } = guardOf(60_000, YOUNG, OLD);
    guard.noteConnection();
    await turn();
    failOver();
    await expect(guard.check()).rejects.toHaveProperty('detail', expect.stringMatching(/for another (59|60) s/));
  });

  it('the guard of a master trusts a server that takes over from one whose time was over', async () => {
    const { guard, failOver } = guardOf(1, OLD, OLD.replace('two', 'three'));
    await guard.check();
    failOver();
    await guard.check();
    expect(guard.isOver).toBe(true);
  });
});
