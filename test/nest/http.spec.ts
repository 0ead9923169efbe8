import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  Body,
  ConflictException,
  Controller,
  Get,
  HttpException,
  type INestApplication,
  Injectable,
  Logger,
  NotFoundException,
  Param,
  Post,
  Res,
  ServiceUnavailableException,
  UnprocessableEntityException,
} from '@nestjs/common';
import { isLockError, type Lock, type LockError, LockService, RedisLockModule, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { EventEmitter, once } from 'node:events';
import type { ServerResponse } from 'node:http';
import request from 'supertest';
import { until } from '../support/deferred.js';
import { startRedis } from '../support/redis/redis-server.js';
import { PLATFORMS, startApp } from './http-app.js';

const APP_ERRORS = {
  404: () => new NotFoundException('There is no account 42.'),
  409: () => new ConflictException('The account is closed.'),
  422: () => new UnprocessableEntityException('Insufficient funds.'),
  503: () => new ServiceUnavailableException('Back at nine.'),
  418: () => new HttpException({ mine: 'as it is', nested: [1, 2] }, 418),
  500: () => new Error('unexpected'),
};

const workers = new EventEmitter();

@Injectable()
class Accounts {
  @WithLock('account:<id>')
  async withdraw(id: string) {
    return { id };
  }
}

@Controller('accounts')
class AccountsController {
  constructor(
    private readonly accounts: Accounts,
    private readonly locks: LockService,
  ) {}

  @Post(':id/withdraw')
  withdraw(@Param('id') id: string) {
    return this.accounts.withdraw(id);
  }

  @Post('withdraw')
  @WithLock('account:<dto.id>')
  async withdrawFrom(@Body() dto: { id: string }) {
    return dto;
  }

  @Post(':id/force')
  @WithLock('account:<id>')
  async losing(@Param('id') id: string) {
    await this.locks.forceUnlock(`account:${id}`);
    return { id };
  }

  /** Does something under another lock before. */
  @Post(':id/after/:mode')
  async after(@Param('id') id: string, @Param('mode') mode: 'exclusive' | 'read') {
    await this.locks.withLock('payment', () => undefined, { mode });
    return this.accounts.withdraw(id);
  }

  /** Does something under another lock beside. */
  @Post(':id/beside')
  async beside(@Param('id') id: string) {
    await Promise.all([this.accounts.withdraw(id), this.locks.withLock('payment', () => undefined)]);
  }

  @Post(':id/unwired')
  unwired(@Param('id') id: string) {
    return new Accounts().withdraw(id);
  }

  @Post('fail/:status')
  @WithLock('account:<status>')
  async fail(@Param('status') status: keyof typeof APP_ERRORS) {
    throw APP_ERRORS[status]();
  }

  /** Begins a worker, which goes on after the response. */
  @Post(':id/worker')
  async worker(@Param('id') id: string, @Res() response: ServerResponse & { raw?: ServerResponse }) {
    (response.raw ?? response).end();
    await this.locks.withLock('payment', () => undefined);
    await this.accounts.withdraw(id).catch((error: LockError) => workers.emit('failed', error));
  }

  /** Responds before its work, as a webhook does. */
  @Post(':id/accepted/:how')
  accepted(
    @Param('id') id: string,
    @Param('how') how: 'end' | 'write',
    @Res() response: ServerResponse & { raw?: ServerResponse },
  ) {
    (response.raw ?? response)[how]('accepted');
    return this.accounts.withdraw(id);
  }

  @Post(':id/handled')
  handled(@Param('id') id: string) {
    return this.accounts.withdraw(id).catch((error: unknown) => ({ handled: isLockError(error) && error.code }));
  }

  @Post(':id/handled/:status')
  handledWith(@Param('id') id: string, @Param('status') status: keyof typeof APP_ERRORS) {
    return this.accounts.withdraw(id).catch(() => {
      throw APP_ERRORS[status]();
    });
  }

  @Get(':id')
  get(@Param('id') id: string) {
    return { id };
  }
}

const METADATA = { controllers: [AccountsController], providers: [Accounts] };

describe.each(PLATFORMS)('on %s', (_platform, adapter) => {
  let app: INestApplication;
  let held: Lock;

  beforeEach(async () => {
    app = await startApp(adapter, { imports: [LockTestingModule.forRoot({ wait: 0 })], ...METADATA });
    held = await app.get(LockService).lock('account:42');
  });

  afterEach(async () => {
    await held.unlock();
    await app.close();
  });

  const post = (path: string, body?: object) => request(app.getHttpServer()).post(`/accounts/${path}`).send(body);

  it.each(['42/withdraw', 'withdraw'])(
    'a time-out of %s is answered with 409 and Retry-After, and does not tell the key',
    async (path) => {
      const { status, headers, body, text } = await post(path, { id: '42' });
      expect(status).toBe(409);
      expect(headers).toMatchObject({
        'retry-after': '1',
        'content-type': expect.stringContaining('application/json'),
      });
      expect(body).toEqual({
        statusCode: 409,
        code: 'LOCK_TIMEOUT',
        message: expect.any(String),
        error: 'Conflict',
        retryable: true,
        retryAfter: 1,
      });
      expect(text).not.toMatch(/account|42|Accounts|holder/);
    },
  );

  it('a lost lock is answered with 503 and without Retry-After, as its work may be half done', async () => {
    const { status, headers, body } = await post('43/force');
    expect([status, headers['retry-after']]).toEqual([503, undefined]);
    expect(body).toEqual({
      statusCode: 503,
      code: 'LOCK_LOST',
      message: expect.any(String),
      error: 'Service Unavailable',
      retryable: false,
    });
  });

  it('a time-out after the work of another lock of the request has no Retry-After: a retry would repeat that', async () => {
    const { status, headers, body } = await post('42/after/exclusive');
    expect([status, headers['retry-after']]).toEqual([409, undefined]);
    expect(body).toMatchObject({ retryable: false, message: expect.stringContaining('part of the work may be done') });
    expect(body).not.toHaveProperty('retryAfter');
  });

  it('a time-out beside the work of another lock of the request has no Retry-After, though that has not begun', async () => {
    const { status, headers, body } = await post('42/beside');
    expect([status, headers['retry-after'], body]).toMatchObject([409, undefined, { retryable: false }]);
  });

  it('a time-out in a worker that a request has begun is retryable once the request has its response', async () => {
    const failed = once(workers, 'failed');
    await post('42/worker').expect(201);
    expect(await failed).toEqual([expect.objectContaining({ code: 'LOCK_TIMEOUT', retryable: true })]);
  });

  it('a time-out after a reader of the same request, or in the next request, has Retry-After', async () => {
    await post('43/after/exclusive').expect(201);
    for (const path of ['42/after/read', '42/withdraw']) {
      const { status, headers, body } = await post(path);
      expect([status, headers['retry-after'], body]).toMatchObject([409, '1', { retryable: true }]);
    }
  });

  it.each([{}, { id: '' }, { id: { $ne: 1 } }])(
    'a value of which no key can be made, %j, is answered with 400',
    async (dto) => {
      const { status, headers, body, text } = await post('withdraw', dto);
      expect([status, headers['retry-after']]).toEqual([400, undefined]);
      expect(body).toEqual({
        statusCode: 400,
        code: 'LOCK_KEY_INVALID',
        message: expect.any(String),
        error: 'Bad Request',
        retryable: false,
      });
      expect(text).not.toMatch(/account|dto|Accounts/);
    },
  );

  it('an object that Nest did not wire is answered with 500, and without the name of the method', async () => {
    const { status, headers, body, text } = await post('43/unwired');
    expect([status, headers['retry-after']]).toEqual([500, undefined]);
    expect(body).toEqual({
      statusCode: 500,
      code: 'LOCK_NOT_WIRED',
      message: 'Internal server error',
      error: 'Internal Server Error',
      retryable: false,
    });
    expect(text).not.toMatch(/withdraw/);
  });

  it('a successful request has the answer of the handler, and no Retry-After', async () => {
    const { status, headers, body } = await post('43/withdraw');
    expect([status, headers['retry-after'], body]).toEqual([201, undefined, { id: '43' }]);
  });

  it.each([404, 409, 422, 503, 418] as const)(
    "the app's own %i passes through untouched, without Retry-After",
    async (status) => {
      const answer = await post(`fail/${status}`);
      const own = APP_ERRORS[status]();
      expect([answer.status, answer.headers['retry-after']]).toEqual([status, undefined]);
      expect(answer.body).toEqual(own.getResponse());
    },
  );

  it("the app's own unexpected error is still a 500 of Nest", async () => {
    const answer = await post('fail/500');
    expect(answer.body).toEqual({ statusCode: 500, message: 'Internal server error' });
  });

  it('a lock error that the handler turns into a success has no Retry-After', async () => {
    const { status, headers, body } = await post('42/handled');
    expect([status, headers['retry-after'], body]).toEqual([201, undefined, { handled: 'LOCK_TIMEOUT' }]);
  });

  it.each([404, 409, 503] as const)(
    'a lock error that the handler turns into a %i of its own has no Retry-After',
    async (status) => {
      const answer = await post(`42/handled/${status}`);
      expect([answer.status, answer.headers['retry-after']]).toEqual([status, undefined]);
    },
  );

  it('the server log has the key that the client is not told', async () => {
    const lines: unknown[] = [];
    const log = (line: unknown) => lines.push(line);
    Logger.overrideLogger({ log, warn: log, error: log });
    await post('42/withdraw');
    await post('43/force');
    Logger.overrideLogger(false);
    expect(lines).toEqual([expect.stringContaining('"account:42"'), expect.stringContaining('"account:43"')]);
  });

  it.each(['end', 'write'])(
    'the server log has an error of which the response can not tell any more (%s)',
    async (how) => {
      const lines: string[] = [];
      const log = (line: string) => lines.push(line);
      Logger.overrideLogger({ log, warn: log, error: log });
      await post(`42/accepted/${how}`).expect(201);
      await until(() => lines.length > 0);
      await post('43/accepted/end').expect(201);
      Logger.overrideLogger(false);
      expect(lines).toEqual([
        expect.stringMatching(/^POST \/accounts\/:id\/accepted\/:how \(AccountsController\.accepted\): .*"account:42"/),
      ]);
    },
  );
});

describe.each(PLATFORMS)('on %s, while Redis is down,', (_platform, adapter) => {
  it('a call that needs a lock is answered with 503 and Retry-After, and any other as always', async () => {
    Logger.overrideLogger(false);
    const server = await startRedis();
    const app = await startApp(adapter, {
      imports: [RedisLockModule.forRoot({ connection: server.url, commandTimeout: '500ms' })],
      ...METADATA,
    });
    const withdraw = () => request(app.getHttpServer()).post('/accounts/42/withdraw');
    await withdraw().expect(201);

    await server.stop();
    const { headers, body, text } = await withdraw().expect(503);
    expect(headers['retry-after']).toBe('1');
    expect(body).toEqual({
      statusCode: 503,
      code: 'LOCK_UNAVAILABLE',
      message: expect.any(String),
      error: 'Service Unavailable',
      retryable: true,
    });
    expect(text).not.toMatch(/42|redis|127\.0\.0\.1/i);
    await request(app.getHttpServer()).get('/accounts/42').expect(200);
    await app.close();
  });
});
