import { afterEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import type { LockUnavailableError } from 'nest-redis-lock';
import { detailOf } from '../../lib/errors/lock.error.js';
import { diagnosis } from '../../lib/redis/connection/redis-diagnosis.js';
import { until } from '../support/deferred.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';
import { startRedis, type RedisServer } from '../support/redis/redis-server.js';

/** Some proxies pass on only a part of what Redis can do. */
describe('Servers and proxies that lack a part of Redis', () => {
  const open: ClosableLockService[] = [];
  let server: RedisServer;

  afterEach(async () => {
    await Promise.all(open.splice(0).map((locks) => locks.close()));
    await server.stop();
  });

  /** A server that does not know some commands; `told` hears what the log says of messages to this process. */
  async function without(...commands: string[]) {
    server = await startRedis(...commands.flatMap((command) => ['--rename-command', command, '']));
    const told: string[] = [];
    const make = () => {
      const locks = lockService(
        redisStore(
          { connection: server.url },
          {
            unsubscribed: (_server, cause) => told.push(diagnosis(cause!)),
            mute: (_server, error) => told.push(detailOf(error)),
          },
        ),
      );
      open.push(locks);
      return locks;
    };
    return { make, told };
  }

  it.each([[['EVALSHA']], [['EVAL']], [['EVAL', 'EVALSHA', 'SCRIPT']]])(
    'the first error says that a server runs no Lua scripts: without %j',
    async (commands) => {
      const { make } = await without(...commands);
      const error: unknown = await make()
        .lock('a')
        .catch((error: unknown) => error);
      expect(error).toMatchObject({ code: 'LOCK_UNAVAILABLE' });
      expect((error as LockUnavailableError).detail).toMatch(
        /unknown command.*It runs no Lua scripts, which all locks need\. Is it a proxy or a Sentinel\? Connect to Redis itself\.$/,
      );
    },
  );

  it('the log says once that a server has no pub/sub; waiters poll, and the health check says so', async () => {
    const { make, told } = await without('SUBSCRIBE');
    const [here, there] = [make(), make()];
    const held = await here.lock('a', { wait: 0 });
    const waiting = there.lock('a', { wait: 10_000 });
    await until(() => told.length === 2);
    expect(await here.health()).toMatchObject({
      isUp: true,
      problems: [expect.stringMatching(/subscription .* is down: until it is back, they poll about once a second\.$/)],
    });
    await held.unlock();
    await (await waiting).unlock();
    expect(told).toEqual(
      Array(2).fill(
        expect.stringMatching(/unknown command .*This server or proxy has no pub\/sub: connect to Redis itself\.$/),
      ),
    );
  });

  it('the log says once that the user may publish nothing; waiters poll', async () => {
    const { make, told } = await without();
    const [here, there] = [make(), make()];
    const client = new Redis(server.url);
    await client.acl('SETUSER', 'default', '-publish');
    client.disconnect();
    const held = await here.lock('a');
    const waiting = there.lock('a', { wait: 20_000 });
    // It notices when no message has come for five seconds.
    await until(() => told.length > 0);
    await held.unlock();
    await (await waiting).unlock();
    expect(told).toEqual([expect.stringMatching(/Its user lacks rights/)]);
  }, 20_000);

  it('the first error says that the user may run no scripts', async () => {
    const { make } = await without();
    const client = new Redis(server.url);
    await client.acl('SETUSER', 'default', '-@scripting');
    client.disconnect();
    await expect(make().lock('a')).rejects.toMatchObject({ detail: expect.stringMatching(/Its user lacks rights/) });
  });
});
