import { AsyncLocalStorage } from 'node:async_hooks';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { LockTimeoutError, type Lock, type LockOptions, type LostReason } from 'nest-redis-lock';
import type { OutageLog } from '../../lib/redis/connection/outage-log.js';
import { deferred, turn, until, type Deferred } from '../support/deferred.js';
import { freePort } from '../support/free-port.mjs';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';
import type { RedisServer } from '../support/redis/redis-server.js';
import { startProxy } from '../support/redis/tcp-proxy.mjs';
import { withRedis } from '../support/redis/with-redis.js';

/** What a call-back of the user sees around it. */
interface Surroundings {
  readonly request: string | undefined;
  readonly current: string | undefined;
}

describe('The async context', () => {
  const requests = new AsyncLocalStorage<string>();
  let server: RedisServer;
  let redis: Redis;
  let locks: ClosableLockService;
  let operator: ClosableLockService;
  let gone: Deferred;
  const running: Promise<unknown>[] = [];
  const told: (Surroundings & { readonly type: string })[] = [];

  withRedis((one) => ({ server, redis } = one));

  beforeEach(async () => {
    locks = lockService(redisStore({ connection: server.url }), { lease: '30s', shutdownGrace: 0 });
    operator = lockService(redisStore({ connection: server.url }), { shutdownGrace: 0 });
    gone = deferred();
    told.length = 0;
    requests.run('subscriber', () =>
      locks.events.subscribe({
        next: ({ type }) => told.push({ type, ...around() }),
        complete: () => told.push({ type: 'complete', ...around() }),
      }),
    );
    // A request that opened the connections, and whose short lease keeps the shared timers going.
    const isInside = deferred<void>();
    running.push(
      requests.run('stranger', () =>
        locks.withLock(
          'theirs',
          () => locks.withLock('short', () => (isInside.resolve(), gone.promise), { lease: 1200, onLost: 'ignore' }),
          { onLost: 'ignore' },
        ),
      ),
    );
    await isInside.promise;
    await until(async () => (await redis.pubsub('CHANNELS', '*wake*')).length >= 1);
  });

  afterEach(async () => {
    gone.resolve();
    await Promise.all(running.splice(0));
    await locks.close();
    await operator.close();
  });

  const around = (): Surroundings => ({ request: requests.getStore(), current: locks.current()?.key });

  const losses: [
    reason: LostReason,
    how: string,
    options: LockOptions,
    lose: (lock: Lock) => unknown,
    isAllLost?: boolean,
  ][] = [
    ['expired', 'at the end of a fixed lease', { lease: 1000, watchdog: false }, () => undefined],
    ['expired', 'when it is not renewed any more', { lease: 1000, maxHold: 50 }, () => undefined],
    ['taken', 'when a renewal finds it gone', { lease: 2000 }, () => redis.del('lock:mine')],
    ['taken', 'by the message of an operator', {}, () => operator.forceUnlock('mine')],
    ['shutdown', 'when the app goes', {}, () => requests.run('app', () => locks.close()), true],
    ['unlocked', 'when another gives it back', {}, (lock) => requests.run('stranger', () => lock.unlock())],
  ];

  describe.each(losses)('of who hears of a loss (%s) %s', (reason, _how, options, lose, isAllLost = false) => {
    it.each([
      ['taken alone', false],
      ['nested in another of its owner', true],
    ])('a listener of a loss runs in the context of the owner, for a lock that was %s', async (_how, isNested) => {
      const heard = deferred<Surroundings>();
      let outer!: Lock;
      let lost!: AbortSignal;
      // Twice, so that what is nested hears it too.
      const own = (): Promise<unknown> =>
        locks.withLock(
          'mine',
          (lock) => {
            outer = lock;
            return locks.withLock(
              'mine',
              async ({ signal }) => {
                lost = signal;
                signal.addEventListener('abort', () => heard.resolve(around()));
                void (async () => lose(outer))();
                await heard.promise;
              },
              { onLost: 'ignore' },
            );
          },
          { ...options, onLost: 'ignore' },
        );
      running.push(
        requests.run('owner', () => (isNested ? locks.withLock('around', own, { onLost: 'ignore' }) : own())),
      );

      expect(await heard.promise).toEqual({ request: 'owner', current: isNested && !isAllLost ? 'around' : undefined });
      expect(lost.reason).toMatchObject({ reason });
      gone.resolve();
      await Promise.all(running.splice(0));
      await locks.close();
      if (reason !== 'unlocked') expect(told.map(({ type }) => type)).toContain('lost');
      expect(told.map(({ type }) => type)).toContain('complete');
      for (const event of told) expect(event).toEqual({ type: event.type, request: 'subscriber', current: undefined });
    });
  });

  it('a listener of a loss does not enter a lock of another request', async () => {
    const answer = deferred<unknown>();
    const mine = await requests.run('owner', () => locks.lock('mine', { lease: 1000, watchdog: false }));
    requests.run('owner', () =>
      mine.signal.addEventListener('abort', () =>
        answer.resolve(locks.withLock('theirs', () => 'inside', { wait: 0 }).catch((error: unknown) => error)),
      ),
    );
    expect(await answer.promise).toBeInstanceOf(LockTimeoutError);
  });

  it('a caller that is handed a lock runs in its own context, not in that of the caller that released it', async () => {
    const first = await locks.lock('mine');
    const second = requests.run('second', () => locks.withLock('mine', () => around()));
    const third = requests.run('third', () => locks.withLock('mine', () => around()));
    await turn();
    await requests.run('first', () => first.unlock());
    expect(await second).toEqual({ request: 'second', current: 'mine' });
    expect(await third).toEqual({ request: 'third', current: 'mine' });
  });

  it.each(['refuse', 'refuseRudely'] as const)(
    'connections that the call of a request opened do not keep its context: no log line is written in it (%s)',
    async (refuse) => {
      const lines: [string, string | undefined][] = [];
      const log = Object.fromEntries(
        (['down', 'up', 'unsubscribed', 'subscribed'] as const satisfies (keyof OutageLog)[]).map((line) => [
          line,
          () => void lines.push([line, requests.getStore()]),
        ]),
      );
      const proxy = await startProxy(server.port);
      const service = lockService(redisStore({ connection: proxy.url, commandTimeout: 200 }, log), {
        shutdownGrace: 0,
      });
      const call = (key: string) =>
        requests.run('request', () => service.withLock(key, () => 'done').catch(() => 'failed'));
      const written = (line: string) => until(() => lines.some(([one]) => one === line));
      try {
        expect(await call('a')).toBe('done');
        await until(() => proxy.wires.some(({ subscribes }) => subscribes));
        proxy[refuse]();
        expect(await call('b')).toBe('failed');
        await Promise.all([written('down'), written('unsubscribed')]);
        proxy.welcome();
        await Promise.all([written('up'), written('subscribed')]);
      } finally {
        await service.close();
        await proxy.stop();
      }
      expect(lines.filter(([, request]) => request !== undefined)).toEqual([]);
    },
  );

  it('the log line about an outage is not written in the context of the request that met it', async () => {
    const logged = deferred<string | undefined>();
    const store = redisStore(
      { connection: `redis://127.0.0.1:${await freePort()}`, commandTimeout: 100 },
      { down: () => logged.resolve(requests.getStore()) },
    );
    const call = requests.run('request', () => store.isLocked('a'));
    await expect(call).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    expect(await logged.promise).toBeUndefined();
    await store.close();
  });
});
