import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, Inject, Injectable, Module, Post } from '@nestjs/common';
import { Test, type TestingModule, type TestingModuleBuilder } from '@nestjs/testing';
import request from 'supertest';
import {
  CurrentLock,
  getLockServiceToken,
  InjectLocks,
  type Lock,
  LockOptionsError,
  LockService,
  RedisLockModule,
  WithLock,
} from 'nest-redis-lock';
import { LockTestingModule, TestLockService } from 'nest-redis-lock/testing';

@Injectable()
class Accounts {
  withdrawn = 0;

  @WithLock('account:<id>')
  async withdraw(id: string, @CurrentLock() lock?: Lock) {
    this.withdrawn++;
    await new Promise<void>((resolve) => setImmediate(resolve));
    lock!.assertHeld();
    return id;
  }

  @WithLock('nightly', { wait: 0, onTimeout: 'skip' })
  async nightly(): Promise<string | undefined> {
    return 'done';
  }
}

@Controller()
class AccountController {
  @Inject(Accounts) readonly accounts!: Accounts;

  @Post('withdraw')
  async withdraw() {
    return this.accounts.withdraw('42');
  }
}

/** An app as it runs in production; nothing answers at its Redis here. */
@Module({
  imports: [RedisLockModule.forRoot({ connection: 'redis://127.0.0.1:1' })],
  providers: [Accounts],
  controllers: [AccountController],
})
class AppModule {}

const opened: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const app of opened.splice(0)) await app.close();
});

async function start(building: TestingModuleBuilder): Promise<TestingModule> {
  const module = await building.compile();
  opened.push(module);
  return module.init();
}

/** The ways a test gets a `TestLockService` under the methods of `Accounts`. */
const WAYS: [string, () => TestingModuleBuilder][] = [
  [
    'LockTestingModule.forRoot()',
    () => Test.createTestingModule({ imports: [LockTestingModule.forRoot()], providers: [Accounts] }),
  ],
  [
    'a provider of its own',
    () => Test.createTestingModule({ providers: [Accounts, { provide: LockService, useClass: TestLockService }] }),
  ],
  [
    'overrideProvider().useClass()',
    () =>
      Test.createTestingModule({ imports: [AppModule] })
        .overrideProvider(LockService)
        .useClass(TestLockService),
  ],
  [
    'overrideProvider().useValue()',
    () =>
      Test.createTestingModule({ imports: [AppModule] })
        .overrideProvider(LockService)
        .useValue(new TestLockService()),
  ],
  [
    'useMocker()',
    () =>
      Test.createTestingModule({ providers: [Accounts] }).useMocker((token) =>
        token === LockService ? new TestLockService() : {},
      ),
  ],
];

describe.each(WAYS)('With %s', (_way, building) => {
  async function app() {
    const module = await start(building());
    return { accounts: module.get(Accounts), locks: module.get<TestLockService>(LockService) };
  }

  it('a locked method of a module for tests runs, and really excludes', async () => {
    const { accounts, locks } = await app();
    expect(await accounts.withdraw('42')).toBe('42');
    await using held = await locks.lock('nightly');
    expect(await accounts.nightly()).toBeUndefined();
    held.assertHeld();
  });

  it('a test sees what happens when the key is busy, the lock is lost, or the store is down', async () => {
    const { accounts, locks } = await app();
    locks.simulate({ busy: 'account:42' });
    await expect(accounts.withdraw('42')).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    expect(accounts.withdrawn).toBe(0);

    locks.simulate({ down: true });
    await expect(accounts.withdraw('42')).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    expect(accounts.withdrawn).toBe(0);

    locks.simulate({ lost: true });
    await expect(accounts.withdraw('42')).rejects.toMatchObject({ code: 'LOCK_LOST' });
    expect(accounts.withdrawn).toBe(1);

    locks.reset();
    expect(await accounts.withdraw('42')).toBe('42');
  });
});

it('a busy key makes a job that skips skip', async () => {
  const module = await start(
    Test.createTestingModule({ imports: [LockTestingModule.forRoot()], providers: [Accounts] }),
  );
  module.get(TestLockService).simulate({ busy: 'nightly' });
  expect(await module.get(Accounts).nightly()).toBeUndefined();
});

it('an HTTP client sees 409 and 503', async () => {
  const module = await Test.createTestingModule({ imports: [AppModule] })
    .overrideProvider(LockService)
    .useClass(TestLockService)
    .compile();
  const app = module.createNestApplication({ logger: false });
  opened.push(app);
  await app.init();
  const locks = app.get<TestLockService>(LockService);
  const post = () => request(app.getHttpServer()).post('/withdraw');

  await post().expect(201);
  locks.simulate({ busy: 'account:42' });
  await post().expect(409).expect('Retry-After', /\d+/);
  locks.simulate({ down: true });
  await post().expect(503);
  locks.simulate({ lost: true });
  await post().expect(503);
  locks.reset();
  await post().expect(201);
});

describe('A named module', () => {
  @Injectable()
  class Invoices {
    @InjectLocks('billing') readonly locks!: LockService;

    @WithLock('invoice:<id>', { module: 'billing' })
    async send(id: string) {
      return id;
    }
  }

  it('a named module has a TestLockService of its own, under getLockServiceToken()', async () => {
    const imports = [LockTestingModule.forRoot(), LockTestingModule.forRoot({ name: 'billing' })];
    const module = await start(Test.createTestingModule({ imports, providers: [Invoices, Accounts] }));
    const billing = module.get<TestLockService>(getLockServiceToken('billing'));
    billing.simulate({ busy: true });

    expect(module.get(Invoices).locks).toBe(billing);
    await expect(module.get(Invoices).send('7')).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    expect(await module.get(Accounts).withdraw('42')).toBe('42');
    expect(module.get(TestLockService)).toBe(module.get(getLockServiceToken()));
  });
});

it.each<[unknown, RegExp]>([
  [undefined, /simulate\(\) takes an object such as \{ busy: 'account:42' \}, not undefined/],
  [null, /not null/],
  ['busy', /not "busy"/],
  [['busy'], /not an array/],
  [{ busy: 5 }, /"busy" is 5, but must be a key, an array of keys, or true/],
  [{ busy: ['job', 5] }, /"busy" is an array, but must be a key/],
  [{ busy: '' }, /"busy" is "", but must be a key/],
  [{ lost: { key: 'job' } }, /"lost" is an object \(Object\), but must be a key/],
  [{ lost: false }, /"lost" is false, but must be a key/],
  [{ down: 'yes' }, /"down" is "yes", but must be true or false/],
])('simulate(%j) is refused', (situation, message) => {
  const locks = new TestLockService();
  expect(() => locks.simulate(situation as object)).toThrow(LockOptionsError);
  expect(() => locks.simulate(situation as object)).toThrow(message);
});
