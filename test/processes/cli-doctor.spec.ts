import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import type { Finding } from '../../lib/cli/doctor/finding.js';
import { Command } from '../support/processes/command.js';
import { until } from '../support/deferred.js';
import { startRedis, type RedisServer } from '../support/redis/redis-server.js';
import { withRedis } from '../support/redis/with-redis.js';

const MINIMAL =
  'resetchannels ~lock:* ~{lock:* &{lock:}:wake:* +evalsha +eval +get +set +del +exists +incrby +pttl +pexpire +zadd +zrem ' +
  '+zrange +zrangebyscore +zremrangebyscore +zrank +zscore +zcard +time +publish +pubsub|numsub +pubsub|channels ' +
  '+subscribe +hello +client|setname +info +ping +wait';

describe('nest-redis-lock doctor', () => {
  let server: RedisServer;
  let redis: Redis;

  withRedis((one) => ({ server, redis } = one));

  async function examine(url = server.url): Promise<{ code: number; findings: Finding[]; problems: string[] }> {
    const command = new Command(url, ['doctor', '--json']);
    const code = await command.exit;
    const findings = JSON.parse(command.out) as Finding[];
    const problems = findings.filter(({ level }) => level === 'problem');
    return { code, findings, problems: problems.map(({ check, text }) => `${check}: ${text}`) };
  }

  async function examineAs(user: string, ...rules: string[]): Promise<string[]> {
    await redis.call('ACL', 'SETUSER', user, 'reset', 'on', '>pw', ...MINIMAL.split(' '), ...rules);
    return (await examine(server.url.replace('redis://', `redis://${user}:pw@`))).problems;
  }

  it('doctor finds nothing wrong with a good server, and leaves nothing there', async () => {
    const { code, findings, problems } = await examine();
    expect([code, problems]).toEqual([0, []]);
    const checks = findings.map(({ check }) => check);
    expect(checks).toEqual(['server', 'restart', 'rights', 'channel', 'round trip', 'clock', 'a lock']);
    expect((await redis.keys('*')).filter((key) => !key.endsWith(':fence'))).toEqual([]);
  }, 30_000);

  it('doctor names each right that a user lacks, and the command that gives it', async () => {
    await redis.call('ACL', 'LOG', 'RESET');
    expect(await examineAs('enough')).toEqual([]);
    const refused = ((await redis.call('ACL', 'LOG')) as unknown[][]).map(
      (entry) => entry[entry.indexOf('object') + 1],
    );
    // ioredis sends that to Redis 7.2 or later, and goes on without it.
    expect(refused.filter((command) => command !== 'client|setinfo')).toEqual([]);
    expect(await examineAs('less', '-zadd', '-pubsub|numsub')).toContainEqual(
      'rights: The user "less" lacks rights. An administrator can run: ACL SETUSER less +zadd +pubsub|numsub',
    );
    await redis.call('ACL', 'SETUSER', 'free', 'reset', 'on', 'nopass', ...MINIMAL.split(' '), '-zadd');
    expect((await examine(server.url.replace('redis://', 'redis://free@'))).problems).toContainEqual(
      'rights: The user "free" lacks rights. An administrator can run: ACL SETUSER free +zadd',
    );
    expect(await examineAs('deaf', '-subscribe')).toContainEqual(
      expect.stringMatching(/^channel: .*An administrator can run: ACL SETUSER deaf \+subscribe$/),
    );
    const [rights] = await examineAs('elsewhere', 'resetkeys', 'resetchannels', '~other:*');
    expect(rights).toContain('ACL SETUSER elsewhere ~lock:* ~{lock:* &{lock:}:wake:*');
  }, 30_000);

  it('doctor leaves nothing there also when its user may not delete', async () => {
    await redis.flushall();
    expect(await examineAs('half', '-set', '-del', '-pexpire', '-zrem')).not.toEqual([]);
    expect((await redis.keys('*')).filter((key) => !key.endsWith(':fence'))).toEqual([]);
  }, 30_000);

  it('doctor says that a server takes no more clients', async () => {
    // One that is still closing would make room for the channel.
    await until(async () => /^connected_clients:1\r/m.test(await redis.info('clients')));
    await redis.config('SET', 'maxclients', '2');
    const { problems } = await examine();
    await redis.config('SET', 'maxclients', '1000');
    expect(problems).toContainEqual(expect.stringMatching(/^channel: .*(max number of clients|"maxclients")/));
  }, 30_000);

  it('doctor finds slots of a cluster without a node, and rights that only a cluster needs', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'doctor-'));
    const ofCluster = ['--cluster-enabled', 'yes', '--cluster-require-full-coverage', 'no'];
    const node = await startRedis(...ofCluster, '--cluster-config-file', join(folder, 'nodes.conf'));
    const admin = new Redis(node.url);
    const url = node.url.replace('redis://', 'redis+cluster://');
    try {
      expect(await examine(url)).toMatchObject({
        code: 69,
        problems: [expect.stringMatching(/^connection: It names no node for any slot.*cluster-announce-ip/)],
      });
      await admin.call('CONFIG', 'SET', 'cluster-announce-ip', '127.0.0.1');
      await admin.cluster('ADDSLOTSRANGE', 0, 16_000);
      await until(async () => (await admin.cluster('INFO')).includes('cluster_state:ok'));
      const rules = [...MINIMAL.split(' '), '+cluster|slots'];
      await admin.call('ACL', 'SETUSER', 'plain', 'reset', 'on', '>pw', ...rules);
      const { code, problems } = await examine(url.replace('//', '//plain:pw@'));
      expect(code).toBe(1);
      expect(problems).toContainEqual(expect.stringMatching(/^slots: 383 of its 16384 slots have no node/));
      expect(problems).toContainEqual(expect.stringMatching(/ACL SETUSER plain \+cluster\|info \+asking$/));
    } finally {
      admin.disconnect();
      await node.stop();
      await rm(folder, { recursive: true });
    }
  }, 60_000);

  it('doctor finds that two nodes of a quorum are one server, by two names', async () => {
    const { port } = new URL(server.url);
    const names = ['127.0.0.1', '127.1', '0.0.0.0'].map((host) => `redis://${host}:${port}`);
    const { problems } = await examine(names.join(','));
    expect(problems).toContain(
      `server: It is the same server as 127.0.0.1:${port}, so it has no vote of its own. Name each server once.`,
    );
  }, 30_000);

  it('doctor finds a server that evicts, and a replica', async () => {
    await redis.config('SET', 'maxmemory', '100mb');
    await redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
    expect(await examine()).toMatchObject({ code: 1, problems: [expect.stringMatching(/^server: it evicts keys/)] });
    await redis.config('SET', 'maxmemory', '0');
    await redis.replicaof('127.0.0.1', 1);
    const { code, problems } = await examine();
    await redis.replicaof('NO', 'ONE');
    expect(code).toBe(1);
    expect(problems).toEqual([
      expect.stringMatching(/^server: it is a replica/),
      expect.stringMatching(/^a lock: .*READONLY/),
    ]);
  }, 30_000);

  it('doctor does not wait for a server that takes connections and says no more', async () => {
    await redis.call('CLIENT', 'PAUSE', '60000', 'WRITE');
    const { code, problems } = await examine();
    expect(code).toBe(1);
    expect(problems).toEqual([
      'connection: It took the connection, and then said nothing for 1000 ms: it hangs, or its writes are paused.',
      expect.stringMatching(/^a lock: .*did not reply within 1000 ms/),
    ]);
    await redis.client('UNPAUSE');
  }, 30_000);

  it('doctor ends with 69 when no server can be reached, and says why', async () => {
    const { code, problems } = await examine('redis://127.0.0.1:1');
    expect(code).toBe(69);
    expect(problems).toEqual([
      'connection: connect ECONNREFUSED 127.0.0.1:1. Check that it runs and that REDIS_URL is right.',
    ]);
    const { problems: withTls } = await examine(server.url.replace('redis://', 'rediss://'));
    expect(withTls).toEqual([expect.stringMatching(/^connection: the TLS handshake got no answer/)]);
  }, 30_000);
});
