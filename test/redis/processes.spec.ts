import { once } from 'node:events';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import type { RedisLockModuleOptions } from 'nest-redis-lock';
import { LONGEST_ANSWER } from '../../lib/store/process-question.js';
import { until } from '../support/deferred.js';
import { startRedis, type RedisServer } from '../support/redis/redis-server.js';
import { RedisMonitor, ofClients, published } from '../support/redis/redis-monitor.js';
import { withRedis } from '../support/redis/with-redis.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';

const STATE = { kind: 'state', about: { of: 'café "é" {}' } };

describe('Questions to all processes over Redis', () => {
  let server: RedisServer;
  let redis: Redis;
  withRedis((one) => ({ server, redis } = one));
  const services: ClosableLockService[] = [];

  /** As in a process of its own: each has its own connections. */
  async function serviceOn(options: RedisLockModuleOptions = {}): Promise<ClosableLockService> {
    const service = lockService(redisStore({ connection: server.url, ...options }), { shutdownGrace: 0 });
    services.push(service);
    service.onApplicationBootstrap();
    const source = await sourceOf(service);
    await until(async () => (await channels()).some((channel) => channel.endsWith(source)));
    return service;
  }

  const channels = async () => (await redis.pubsub('CHANNELS')) as string[];
  const sourceOf = async ({ processes }: ClosableLockService) => (await processes.find()).sources[0]!;

  afterEach(() => Promise.all(services.splice(0).map((one) => one.close())));

  it('every process that runs is found, also one that never took a lock, and answers', async () => {
    const [asker, ...others] = [await serviceOn(), await serviceOn(), await serviceOn()];
    const elsewhere = await serviceOn({ keyPrefix: 'lock' });
    for (const one of [asker, elsewhere, ...others])
      one.processes.on('state', (about) => ({ about, at: services.indexOf(one) }));
    const { bySource, unreached } = await asker.processes.askAll(STATE);
    expect(unreached).toEqual([]);
    const expected = [asker, ...others].map(async (one) => [
      await sourceOf(one),
      { about: STATE.about, at: services.indexOf(one) },
    ]);
    expect([...bySource].sort()).toEqual((await Promise.all(expected)).sort());
  });

  it('a process that keeps its locks in another database of the server is not meant', async () => {
    const inDatabase = async (db: number) => serviceOn({ connection: `${server.url}/${db}` });
    const lent = new Redis(server.url, { db: 1 });
    const [asker, mate, stranger] = [await inDatabase(1), await serviceOn({ connection: lent }), await inDatabase(0)];
    for (const one of [asker, mate, stranger]) one.processes.on('state', () => services.indexOf(one));
    const { bySource, unreached } = await asker.processes.askAll(STATE);
    expect([...bySource.values()].sort()).toEqual([services.indexOf(asker), services.indexOf(mate)]);
    expect(unreached).toEqual([]);
    const lock = await stranger.lock('a');
    expect((await asker.list()).locks).toEqual([]);
    expect((await mate.list()).total).toBe(0);
    expect((await stranger.list()).total).toBe(1);
    await lock.unlock();
    lent.disconnect();
  });

  it('it looks for processes by their channels, whatever is in the key prefix, and at no key', async () => {
    const keyPrefix = 'a [b]*?\\{c} ';
    const [asker, other] = [await serviceOn({ keyPrefix }), await serviceOn({ keyPrefix })];
    for (const one of [asker, other]) one.processes.on('state', () => 'fine');
    const monitor = await RedisMonitor.start(Number(new URL(server.url).port));
    const { bySource, unreached } = await asker.processes.askAll(STATE);
    expect([...bySource.values()]).toEqual(['fine', 'fine']);
    expect(unreached).toEqual([]);
    const seen = await monitor.commands();
    monitor.stop();
    const commands = ofClients(seen).map(([command]) => command!.toLowerCase());
    expect(commands.filter((command) => !command.startsWith('eval'))).toEqual(['pubsub']);
    expect(published(seen).map((message) => message.split(' ', 1)[0])).toEqual(['ask', 'answer']);
  });

  it('a process that knows no such question, or whose answer is too long for one message, is named', async () => {
    const [asker, other] = [await serviceOn(), await serviceOn()];
    asker.processes.on('state', () => 'fine');
    const ask = () => asker.processes.askAll(STATE);
    expect((await ask()).unreached).toMatchObject([{ what: 'process', pid: process.pid, reason: 'unsupported' }]);
    other.processes.on('state', () => 'x'.repeat(LONGEST_ANSWER - 2));
    expect((await ask()).unreached).toEqual([]);
    other.processes.on('state', () => 'x'.repeat(LONGEST_ANSWER - 1));
    expect((await ask()).unreached).toMatchObject([{ what: 'process', reason: 'unsupported' }]);
  });

  it('who ends when it has taken the question is not named', async () => {
    const asker = await serviceOn();
    asker.processes.on('state', () => 'fine');
    const ending = redis.duplicate();
    await ending.subscribe('{lock:}:wake:api-3:4711:abcdefghijklmnop');
    ending.once('message', () => ending.disconnect());
    expect((await asker.processes.askAll(STATE)).unreached).toEqual([]);
  });

  it('who listens on a wake channel and does not answer is named; and one that has left is not', async () => {
    const asker = await serviceOn();
    asker.processes.on('state', () => 'fine');
    const stalled = redis.duplicate();
    await stalled.subscribe('{lock:}:wake:api-3:4711:abcdefghijklmnop');
    const { bySource, unreached } = await asker.processes.askAll(STATE);
    expect(bySource.size).toBe(1);
    expect(unreached).toEqual([
      {
        what: 'process',
        name: 'api-3:4711',
        host: 'api-3',
        pid: 4711,
        instance: 'abcdefghijklmnop',
        reason: 'silent',
        message: expect.stringMatching(/^The process api-3:4711 did not answer in time: it is stalled/),
      },
    ]);
    stalled.disconnect();
    await until(async () => (await channels()).length === 1);
    expect(await asker.processes.ask('api-3:4711:abcdefghijklmnop', STATE)).toBe('gone');
  });

  it('without the right to look for channels, this process answers, and the result says which right to give', async () => {
    await redis.acl('SETUSER', 'shy', 'on', '>pw', '~*', '&*', '+@all', '-pubsub', '+pubsub|numsub');
    const url = server.url.replace('//', '//shy:pw@');
    const [asker] = [await serviceOn({ connection: url }), await serviceOn()];
    asker.processes.on('state', () => 'fine');
    const { bySource, unreached } = await asker.processes.askAll(STATE);
    expect([...bySource.values()]).toEqual(['fine']);
    expect(unreached).toMatchObject([{ what: 'server', reason: 'forbidden' }]);
    expect(unreached[0]!.message).toContain('"+pubsub|channels"');
    await redis.acl('DELUSER', 'shy');
  });

  it('without a subscription, or without Redis, this process answers, and the result says what is wrong', async () => {
    await redis.acl('SETUSER', 'deaf', 'on', '>pw', '~*', '+@all', 'resetchannels');
    const deaf = lockService(redisStore({ connection: server.url.replace('//', '//deaf:pw@') }), { shutdownGrace: 0 });
    services.push(deaf);
    deaf.onApplicationBootstrap();
    await until(async () =>
      (await deaf.processes.askAll(STATE)).unreached.some(({ reason }) => reason === 'unsubscribed'),
    );
    await redis.acl('DELUSER', 'deaf');

    const asker = await serviceOn({ commandTimeout: '300ms' });
    asker.processes.on('state', () => 'fine');
    await redis.client('PAUSE', 700, 'ALL');
    const { bySource, unreached } = await asker.processes.askAll(STATE);
    expect([...bySource.values()]).toEqual(['fine']);
    expect(unreached).toMatchObject([{ what: 'server', name: expect.stringContaining(':'), reason: 'unavailable' }]);
    await redis.ping();
  });

  it('a Redis that is down is named as such, with the cause, and not only as one without a subscription', async () => {
    const mortal = await startRedis();
    let deaf = false;
    const store = redisStore(
      { connection: mortal.url, commandTimeout: '300ms' },
      { unsubscribed: () => void (deaf = true) },
    );
    const service = lockService(store, { shutdownGrace: 0 });
    services.push(service);
    service.onApplicationBootstrap();
    await until(async () => (await service.processes.find()).unreached.length === 0);
    await mortal.stop();
    await until(() => deaf);
    const { host } = new URL(mortal.url);
    expect((await service.list()).unreached).toEqual([
      {
        what: 'server',
        name: host,
        reason: 'unavailable',
        message: expect.stringMatching(
          `^The processes that listen on Redis at ${host} could not be found\\. .*ECONNREFUSED`,
        ),
      },
    ]);
  });

  it('a process answers only questions that are questions, and only on wake channels', async () => {
    const asked: unknown[] = [];
    const asker = await serviceOn();
    asker.processes.on('state', (about) => asked.push(about));
    const to = await sourceOf(asker);
    const replyTo = '{lock:}:wake:me';
    const ears = redis.duplicate();
    await ears.subscribe(replyTo, 'elsewhere');
    const heard = once(ears, 'message');
    const question = { kind: 'state', to, replyTo, about: 'first' };
    for (const text of [
      'ask',
      'ask 1',
      'ask 1 {',
      'ask 1 null',
      'ask 1 []',
      'ask 1 {"kind":"state"}',
      `ask 1 ${JSON.stringify({ ...question, to: 'somebody else' })}`,
      `ask 1 ${JSON.stringify({ ...question, to: 7 })}`,
      `ask 1 ${JSON.stringify({ ...question, replyTo: 'elsewhere' })}`,
      `ask 1 ${JSON.stringify({ ...question, database: 1, replyTo: 'elsewhere' })}`,
      `ask 1 ${JSON.stringify({ ...question, about: 'x'.repeat(2 * LONGEST_ANSWER) })}`,
      'answer',
      'answer 1 {}',
      `ask 2 ${JSON.stringify(question)}`,
    ])
      await redis.publish(`{lock:}:wake:${to}`, text);
    expect(await heard).toEqual([replyTo, 'answer 2 1']);
    expect(asked).toEqual(['first']);
    ears.disconnect();
  });
});
