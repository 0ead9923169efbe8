import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { judge } from '../support/checker/verdict.js';
import { TestChild } from '../support/processes/child-process.js';
import { Contender, lost, merged } from '../support/processes/contenders.js';
import { lockService, redisStore } from '../support/stores/lock-services.js';
import { RedisServers } from '../support/redis/redis-servers.js';

const KEY = 'hot';
const LEASE_MS = 1500;

describe('Processes on a quorum', () => {
  let servers: RedisServers;

  beforeAll(async () => {
    servers = await RedisServers.start(3);
    await servers.trusted(LEASE_MS);
  });

  afterEach(() => servers.reset());

  afterAll(() => servers.stop());

  it('processes on a quorum have a key one at a time, with fences that grow, and none of them starves', async () => {
    const plan = { callers: 6, sections: 12, holdMs: 1, lease: LEASE_MS, options: {} };
    const contenders = await Contender.start(servers.urls.join(','), KEY, plan, plan);
    for (const contender of contenders) contender.go();
    const reports = await Promise.all(contenders.map((contender) => contender.report()));
    const sections = merged(reports);
    expect(sections).toHaveLength(144);
    expect(judge(sections).examples()).toBe('');
    expect(lost(sections)).toEqual([]);
    const sourceOf = ({ token }: { readonly token: string }) => token.slice(0, token.lastIndexOf('.'));
    expect(new Set(sections.slice(0, 120).map(sourceOf)).size).toBe(2);
    await servers.nothingLeft();
  }, 30_000);

  it('a process on a quorum gets the key of a killed one when its lease is over, with a larger fence', async () => {
    const child = new TestChild('hold.mjs', servers.urls.join(','), KEY, 500);
    const { fence } = await child.message<{ fence: number }>();
    await child.kill();
    const killedAt = performance.now();
    const locks = lockService(redisStore({ connection: servers.urls, lease: LEASE_MS }), {
      wait: '10s',
      lease: LEASE_MS,
    });
    expect((await locks.lock(KEY)).fence).toBeGreaterThan(fence);
    expect(performance.now() - killedAt).toBeLessThan(500 + 1000);
    await locks.close();
  }, 30_000);
});
