import { expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { until } from '../support/deferred.js';
import type { RedisServer } from '../support/redis/redis-server.js';
import { startProxy } from '../support/redis/tcp-proxy.mjs';
import { withRedis } from '../support/redis/with-redis.js';
import { lockService, redisStore } from '../support/stores/lock-services.js';

let server: RedisServer;

withRedis((one) => ({ server } = one));

it.each(['own', 'lent'])(
  'a connection that is cut whenever a script is sent is one outage: %s client',
  async (whose) => {
    const proxy = await startProxy(server.port);
    const lent = new Redis(proxy.url).on('error', () => undefined);
    const log: string[] = [];
    const store = redisStore(
      { connection: whose === 'lent' ? lent : proxy.url, commandTimeout: 300 },
      { down: () => log.push('down'), up: () => log.push('up') },
    );
    const locks = lockService(store, { shutdownGrace: 0 });
    await locks.withLock('a', () => undefined);
    proxy.dropRequests((chunk, wire) => {
      const isScript = /EVAL/i.test(chunk.toString('latin1'));
      if (isScript) wire.cut();
      return isScript;
    });
    const isRefused = (key: string) => locks.lock(key).then(String, ({ detail }: { detail: string }) => detail);
    await isRefused('a');
    for (let time = 0; time < 4; time++) {
      const details = await Promise.all(['a', 'b', 'c'].map(isRefused));
      expect(details.filter((detail) => detail.includes('another call is probing it')).length).toBeGreaterThan(0);
    }
    expect(log).toEqual(['down']);
    proxy.heal();
    await until(() => locks.withLock('a', () => true).catch(() => false));
    expect(log).toEqual(['down', 'up']);
    await locks.close();
    lent.disconnect();
    await proxy.stop();
  },
);
