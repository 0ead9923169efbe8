import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import {
  Controller,
  Get,
  HttpException,
  type INestApplication,
  Injectable,
  type MiddlewareConsumer,
  Module,
  type NestMiddleware,
} from '@nestjs/common';
import { type Lock, LockService, type LockOptions } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import type { IncomingMessage, ServerResponse } from 'node:http';
import request from 'supertest';
import { logger } from '../../lib/log/logger.js';
import { PLATFORMS, startApp } from './http-app.js';

/** Handles the requests of a customer one by one. */
@Injectable()
class OneByOne implements NestMiddleware {
  readonly #locks: LockService;

  constructor(locks: LockService) {
    this.#locks = locks;
  }

  async use({ headers }: IncomingMessage, _response: ServerResponse, next: () => void): Promise<void> {
    const options = JSON.parse(String(headers['x-options'])) as LockOptions;
    await this.#locks.withLock('customer:7', () => undefined, options);
    next();
  }
}

@Controller()
class Orders {
  @Get('orders/:id')
  get(): string {
    return 'handled';
  }
}

@Module({
  imports: [LockTestingModule.forRoot({ exceptionFactory: () => new HttpException('of the factory', 423) })],
  controllers: [Orders],
})
class App {
  configure(consumer: MiddlewareConsumer): void {
    consumer.apply(OneByOne).forRoutes(Orders);
  }
}

describe.each(PLATFORMS)('A lock error of a middleware on %s', (_platform, adapter) => {
  let app: INestApplication;
  let held: Lock;

  beforeEach(async () => {
    app = await startApp(adapter, { imports: [App] });
    held = await app.get(LockService).lock('customer:7');
  });

  afterEach(async () => {
    jest.restoreAllMocks();
    await held.unlock();
    await app.close();
  });

  const call = (options: object) =>
    request(app.getHttpServer() as never)
      .get('/orders/42?token=secret')
      .set('x-options', JSON.stringify(options));

  it('a lock error of a middleware is answered with Retry-After, and logged with its path', async () => {
    const warn = jest.spyOn(logger, 'warn').mockImplementation(() => undefined);
    const response = await call({ wait: 0 });
    expect([response.status, response.headers['retry-after']]).toEqual([409, '1']);
    expect(warn.mock.calls).toEqual([[expect.stringMatching(/^GET \/orders\/42 \(middleware\): .*customer:7/)]]);
  });

  it('a mistake in a middleware is logged with its stack', async () => {
    const error = jest.spyOn(logger, 'error').mockImplementation(() => undefined);
    expect((await call({ weit: 5 })).status).toBe(500);
    expect(error.mock.calls).toEqual([
      [expect.stringMatching(/^GET \/orders\/42 \(middleware\): .*"weit"/), expect.stringContaining('at OneByOne')],
    ]);
  });
});
