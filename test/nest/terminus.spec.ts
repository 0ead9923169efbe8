import { afterEach, beforeAll, afterAll, describe, expect, it } from '@jest/globals';
import { Controller, Get, Logger, type DynamicModule, type INestApplication } from '@nestjs/common';
import { HealthCheck, HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { LockService, RedisLockModule, type RedisLockModuleOptions } from 'nest-redis-lock';
import { LockHealthIndicator } from 'nest-redis-lock/terminus';
import { LockTestingModule } from 'nest-redis-lock/testing';
import request from 'supertest';
import { until } from '../support/deferred.js';
import { RedisServers } from '../support/redis/redis-servers.js';
import { withRedis } from '../support/redis/with-redis.js';
import { PLATFORMS, startApp } from './http-app.js';
import type { RedisServer } from '../support/redis/redis-server.js';
import type { Redis } from 'ioredis';

Logger.overrideLogger(false);

const COMMAND_TIMEOUT_MS = 300;

@Controller('health')
class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly locks: LockHealthIndicator,
  ) {}

  @Get()
  @HealthCheck()
  check() {
    return this.health.check([() => this.locks.isHealthy('locks')]);
  }

  @Get('billing')
  @HealthCheck()
  billing() {
    return this.health.check([
      () => this.locks.isHealthy('locks'),
      () => this.locks.isHealthy('billing', { module: 'billing' }),
    ]);
  }
}

describe('LockHealthIndicator', () => {
  let app: INestApplication | undefined;

  afterEach(async () => {
    await app?.close();
    app = undefined;
  });

  async function start(imports: DynamicModule[], adapter = PLATFORMS[0]![1]): Promise<void> {
    app = await startApp(adapter, {
      imports: [TerminusModule.forRoot({ logger: false }), ...imports],
      controllers: [HealthController],
      providers: [LockHealthIndicator],
    });
  }

  const redisModule = (options: RedisLockModuleOptions) =>
    RedisLockModule.forRoot({ commandTimeout: COMMAND_TIMEOUT_MS, shutdownGrace: 0, ...options });
  const ask = async (path = '/health') => {
    const startedAt = performance.now();
    const { status, body } = await request(app!.getHttpServer()).get(path);
    return { status, body, tookMs: performance.now() - startedAt };
  };
  const isUp = async () => (await ask()).status === 200;

  describe('on one Redis', () => {
    let server: RedisServer;
    let redis: Redis;
    withRedis((one) => ({ server, redis } = one));

    it.each(PLATFORMS)('the health check is up, down while Redis is away, then up, on %s', async (_name, adapter) => {
      await start([redisModule({ connection: server.url })], adapter);
      await until(isUp);
      expect((await ask()).body).toMatchObject({ status: 'ok', info: { locks: { status: 'up' } } });
      expect((await redis.keys('*')).filter((key) => !key.endsWith(':fence'))).toEqual([]);

      process.kill(server.pid, 'SIGSTOP');
      const down = await ask();
      process.kill(server.pid, 'SIGCONT');
      expect(down).toMatchObject({
        status: 503,
        body: {
          status: 'error',
          error: { locks: { status: 'down', message: expect.stringMatching(/did not reply within 300 ms/) } },
        },
      });
      expect(down.tookMs).toBeLessThan(COMMAND_TIMEOUT_MS + 2000);
      await until(isUp);

      await server.kill();
      await until(async () => (await ask()).status === 503);
      await server.restart();
      await until(isUp);
    });

    it.each([
      ['read-only', 'READONLY', () => redis.replicaof('127.0.0.1', 1), () => redis.replicaof('NO', 'ONE')],
      ['out of memory', 'OOM', () => redis.config('SET', 'maxmemory', 1), () => redis.config('SET', 'maxmemory', 0)],
      [
        'forbidden to take locks',
        'lacks rights',
        () => redis.acl('SETUSER', 'default', '-set'),
        () => redis.acl('SETUSER', 'default', '+set'),
      ],
    ])('the health check is down while Redis answers but is %s', async (_what, words, begin, end) => {
      await start([redisModule({ connection: server.url })]);
      await until(isUp);
      await begin();
      const { status, body } = await ask();
      await end();
      expect(status).toBe(503);
      expect(body.error.locks.message).toContain(words);
      expect(await redis.ping()).toBe('PONG');
      await until(isUp);
    });

    it('the health check is up with a warning while Redis evicts keys when its memory is full', async () => {
      await start([redisModule({ connection: server.url })]);
      await until(isUp);
      await redis.config('SET', 'maxmemory', '100mb', 'maxmemory-policy', 'allkeys-lru');
      const warnings = [
        expect.stringMatching(/^Redis at 127\.0\.0\.1:\d+: it evicts keys .*"maxmemory-policy allkeys-lru"/),
      ];
      expect(await ask()).toMatchObject({ status: 200, body: { info: { locks: { status: 'up', warnings } } } });
      await redis.config('SET', 'maxmemory', '0', 'maxmemory-policy', 'noeviction');
      expect((await ask()).body.info).toEqual({ locks: { status: 'up' } });
    });

    it('the health check looks at the module that is named', async () => {
      await start([LockTestingModule.forRoot(), redisModule({ name: 'billing', connection: 'redis://127.0.0.1:1' })]);
      expect(await ask()).toMatchObject({ status: 200 });
      expect(await ask('/health/billing')).toMatchObject({
        status: 503,
        body: { info: { locks: { status: 'up' } }, error: { billing: { status: 'down' } } },
      });
    });

    it('the health check says so when there is no module of that name', async () => {
      await start([LockTestingModule.forRoot()]);
      await expect(app!.get(LockHealthIndicator).isHealthy('billing', { module: 'billing' })).rejects.toThrow(
        /no RedisLockModule of the name "billing"/,
      );
    });

    it('the health check is down when the app takes no more locks', async () => {
      await start([LockTestingModule.forRoot()]);
      app!.get(LockService).beforeApplicationShutdown();
      expect((await ask()).body).toMatchObject({
        error: { locks: { message: expect.stringMatching(/shutting down/) } },
      });
    });
  });

  describe('on a quorum', () => {
    let servers: RedisServers;

    beforeAll(async () => {
      servers = await RedisServers.start(5);
    });

    afterAll(() => servers.stop());

    const nodes = (path: 'info' | 'error', up: number) => async () => (await ask()).body[path].locks?.nodes?.up === up;

    it('the health check of a quorum is down, and says why, while its nodes have just started', async () => {
      await start([redisModule({ connection: servers.urls, lease: '10m' })]);
      await until(nodes('error', 0));
      expect((await ask()).body.error.locks.message).toMatch(/was started a moment ago/);
    });

    it('the health check of a quorum says how many nodes are up, and is down when they are no majority', async () => {
      await start([redisModule({ connection: servers.urls, lease: 1000 })]);
      await until(nodes('info', 5));
      await servers.kill(0, 1);
      await until(nodes('info', 3));
      expect(await ask()).toMatchObject({
        status: 200,
        body: { info: { locks: { status: 'up', nodes: { up: 3, of: 5 } } } },
      });
      await servers.kill(2);
      await until(nodes('error', 2));
      expect(await ask()).toMatchObject({
        status: 503,
        body: { error: { locks: { status: 'down', nodes: { up: 2, of: 5 } } } },
      });
      await servers.reset();
      await until(nodes('info', 5));
    }, 30_000);
  });
});
