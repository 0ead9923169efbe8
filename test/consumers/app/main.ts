// What a user's app does with the package, once: over HTTP, on a real Redis, by hand, and in a unit test.
import 'reflect-metadata';
import assert from 'node:assert/strict';
import {
  type CanActivate,
  Controller,
  Get,
  Inject,
  Injectable,
  Module,
  Param,
  Post,
  Scope,
  UseGuards,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { HealthCheckService, TerminusModule } from '@nestjs/terminus';
import { Test } from '@nestjs/testing';
import { Redis } from 'ioredis';
import { register } from 'prom-client';
import {
  CurrentLock,
  InjectLocks,
  isLockError,
  type Lock,
  LockService,
  LockTimeoutError,
  RedisLockModule,
  WithLock,
} from 'nest-redis-lock';
import { LockOpenTelemetryModule } from 'nest-redis-lock/opentelemetry';
import { LockPageModule } from 'nest-redis-lock/page';
import { LockPrometheusModule } from 'nest-redis-lock/prometheus';
import { LockHealthIndicator } from 'nest-redis-lock/terminus';
import { LockTestingModule, TestLockService } from 'nest-redis-lock/testing';
import { requestScope } from './request-scope.js';

const connection = process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379';

@Injectable()
class Accounts {
  balance = 1000;

  @WithLock('account:<id>', { wait: '5s' })
  async withdraw(id: string, amount: number, @CurrentLock() lock?: Lock): Promise<number> {
    assert.equal(lock?.key, `account:${id}`);
    const { balance } = this;
    await new Promise<void>((resolve) => setImmediate(resolve));
    this.balance = balance - amount;
    return this.balance;
  }
}

@Controller('accounts')
class AccountController {
  constructor(
    private readonly accounts: Accounts,
    @InjectLocks('borrowed') private readonly locks: LockService,
  ) {}

  @Post(':id/withdraw/:amount')
  withdraw(@Param('id') id: string, @Param('amount') amount: string): Promise<number> {
    return this.accounts.withdraw(id, Number(amount));
  }

  @WithLock('account:<id>', { module: 'borrowed', wait: 0 })
  @Get(':id/busy')
  async busy(@Param('id') id: string): Promise<string> {
    assert.equal(this.locks.current()?.key, `account:${id}`);
    return 'not busy';
  }
}

@Controller('health')
class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly locks: LockHealthIndicator,
  ) {}

  @Get()
  check(): Promise<unknown> {
    return this.health.check([() => this.locks.isHealthy('locks')]);
  }
}

/** Which Nest does not build: it is given one by a factory for each request, or in a decorator. */
class Doorman implements CanActivate {
  @WithLock('door')
  async canActivate(): Promise<boolean> {
    return true;
  }
}

@Controller({ path: 'door', scope: Scope.REQUEST })
class DoorController {
  constructor(@Inject('doorman') private readonly doorman: Doorman) {}

  @UseGuards(new Doorman())
  @Get()
  open(): Promise<boolean> {
    return this.doorman.canActivate();
  }
}

async function serve(redis: Redis): Promise<void> {
  @Module({
    imports: [
      RedisLockModule.forRoot({ connection }),
      RedisLockModule.forRootAsync({ name: 'borrowed', useFactory: () => ({ connection: redis }) }),
      TerminusModule,
      LockPageModule.forRoot({ openToEverybody: true }),
      LockPrometheusModule,
      LockOpenTelemetryModule,
    ],
    providers: [
      Accounts,
      LockHealthIndicator,
      { provide: 'doorman', scope: Scope.REQUEST, useFactory: () => new Doorman() },
    ],
    controllers: [AccountController, HealthController, DoorController],
  })
  class AppModule {}

  const app = await NestFactory.create(AppModule, { logger: ['error'] });
  await app.listen(0, '127.0.0.1');
  assert.equal((await fetch(`${await app.getUrl()}/health`)).status, 200);
  assert.equal(await (await fetch(`${await app.getUrl()}/door`)).text(), 'true');
  assert.match(
    await (await fetch(`${await app.getUrl()}/locks`)).text(),
    /<script[^>]* src="\.\/locks\/assets\/page\.js"/,
  );
  const url = `${await app.getUrl()}/accounts/42`;
  const answers = await Promise.all([200, 300].map((amount) => fetch(`${url}/withdraw/${amount}`, { method: 'POST' })));
  assert.deepEqual(
    answers.map(({ status }) => status),
    [201, 201],
  );
  assert.equal(app.get(Accounts).balance, 500);
  assert.equal(await (await fetch(`${url}/busy`)).text(), 'not busy');

  const lock = await app.get(LockService).lock('account:42');
  const refused = await fetch(`${url}/busy`);
  assert.equal(refused.status, 409);
  const { retryAfter, ...body } = (await refused.json()) as { retryAfter: number };
  assert.equal(refused.headers.get('retry-after'), String(retryAfter));
  assert.deepEqual(body, {
    statusCode: 409,
    code: 'LOCK_TIMEOUT',
    message: 'Another request is working on this right now. Try again in a moment.',
    error: 'Conflict',
    retryable: true,
  });
  await lock.unlock();
  assert.match(await register.metrics(), /^nest_redis_lock_held\{label="Accounts\.withdraw",mode="exclusive"\} 0$/m);
  await app.close();
}

/** The app of the README's first page, which `run.mjs` puts beside this file. */
async function getStarted(): Promise<void> {
  const { AppModule } = (await import(String('./src/app.module.js'))) as { AppModule: new () => unknown };
  const app = await NestFactory.create(AppModule, { logger: ['error'] });
  await app.listen(0, '127.0.0.1');
  // What the template's own e2e test looks at.
  assert.equal(await (await fetch(await app.getUrl())).text(), 'Hello World!');
  const url = `${await app.getUrl()}/accounts/42/withdraw`;
  const withdraw = async (amount: number) =>
    (await (await fetch(`${url}/${amount}`, { method: 'POST' })).json()) as { balance: number };
  const balances = (await Promise.all([200, 300].map(withdraw))).map(({ balance }) => balance);
  assert.equal(Math.min(...balances), 500);
  await app.close();
}

async function unitTest(): Promise<void> {
  const module = await Test.createTestingModule({
    imports: [LockTestingModule.forRoot()],
    providers: [Accounts],
  }).compile();
  const [accounts, locks] = [module.get(Accounts), module.get(TestLockService)];
  assert.equal(await accounts.withdraw('42', 1), 999);
  locks.simulate({ busy: 'account:42' });
  const error: unknown = await accounts.withdraw('42', 1).catch((thrown: unknown) => thrown);
  assert.ok(error instanceof LockTimeoutError && isLockError(error));
  await module.close();
}

async function main(): Promise<void> {
  const redis = new Redis(connection);
  await serve(redis);
  await getStarted();
  await unitTest();
  await requestScope();
  assert.equal(await redis.ping(), 'PONG');
  await redis.quit();
  console.log('works');
}

void main();
