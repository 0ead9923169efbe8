import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, Injectable, Logger, Module, type ModuleMetadata } from '@nestjs/common';
import { LazyModuleLoader } from '@nestjs/core';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  getLockServiceToken,
  InjectLocks,
  LockOptionsError,
  LockService,
  LockUnavailableError,
  RedisLockModule,
  type RedisLockOptions,
  type RedisLockOptionsFactory,
  WithLock,
} from 'nest-redis-lock';
import { LockTestingModule, MemoryLockStore } from 'nest-redis-lock/testing';

Logger.overrideLogger(false);

/** Nothing listens there. */
const NO_REDIS = 'redis://127.0.0.1:1';
const open: TestingModule[] = [];

afterEach(async () => {
  for (const module of open.splice(0)) await module.close();
});

async function compile(metadata: ModuleMetadata): Promise<TestingModule> {
  const module = await Test.createTestingModule(metadata).compile();
  open.push(module);
  return module;
}

const start = async (metadata: ModuleMetadata) => (await compile(metadata)).init();

/** The service's default wait, as it shows in the time-out of a key that another owner holds in the store. */
async function waitMsOf(locks: LockService, store: MemoryLockStore): Promise<number> {
  await store.acquire({
    keys: ['job'],
    token: 'another owner',
    leaseMs: 60_000,
    sharing: 'exclusive',
    label: undefined,
    queue: false,
  });
  return locks.lock('job').catch((error: { waitMs: number }) => error.waitMs) as Promise<number>;
}

describe('forRoot', () => {
  it('forRoot() builds, starts and stops without options', async () => {
    const module = await start({ imports: [RedisLockModule.forRoot()] });
    expect(module.get(LockService)).toBeInstanceOf(LockService);
  });

  it('forRoot() starts without Redis; each call gets LockUnavailableError within commandTimeout', async () => {
    const module = await start({
      imports: [RedisLockModule.forRoot({ connection: NO_REDIS, commandTimeout: '50ms' })],
    });
    const calledAt = performance.now();
    await expect(module.get(LockService).lock('job')).rejects.toBeInstanceOf(LockUnavailableError);
    expect(performance.now() - calledAt).toBeLessThan(1000);
  });

  it.each([
    [{}, 'LockService of RedisLockModule.forRoot(); in a test, import LockTestingModule.forRoot()'],
    [
      { module: 'billing' },
      'LockService of RedisLockModule.forRoot({ name: "billing" }); ' +
        'in a test, import LockTestingModule.forRoot({ name: "billing" })',
    ],
  ])(
    "a missing forRoot() is named by Nest's error for an app with locked methods (%j), with what to import in a test",
    async (options, missing) => {
      class Jobs {
        @WithLock('job', options)
        async run() {}
      }
      await expect(compile({ providers: [Jobs] })).rejects.toThrow(
        `resolve dependencies of the Jobs. Please make sure that the "Symbol(${missing})" property is available`,
      );
      @Controller()
      class Orders {
        @Get()
        @WithLock('order', { ...options, scope: 'request' })
        async confirm() {}
      }
      await expect(compile({ controllers: [Orders] })).rejects.toThrow(
        `resolve dependencies of the Orders.confirm. Please make sure that the "Symbol(${missing})" property is available`,
      );
    },
  );

  it("a missing forRoot() is named by Nest's error for @InjectLocks, with what to import in a test", async () => {
    class Jobs {
      constructor(@InjectLocks('billing') readonly locks: LockService) {}
    }
    await expect(compile({ providers: [Jobs] })).rejects.toThrow(
      'in a test, import LockTestingModule.forRoot({ name: "billing" })',
    );
  });

  it('forRoot() takes a store instead of a connection', async () => {
    const store = new MemoryLockStore();
    const module = await start({ imports: [RedisLockModule.forRoot({ store, wait: 5 })] });
    expect(await waitMsOf(module.get(LockService), store)).toBe(5);
  });

  it('forRoot() is global, unless isGlobal is false', async () => {
    @Injectable()
    class Jobs {
      constructor(readonly locks: LockService) {}
    }
    @Module({ providers: [Jobs] })
    class JobsModule {}
    const local = LockTestingModule.forRoot({ isGlobal: false });
    @Module({ imports: [local], providers: [Jobs] })
    class ImportingModule {}

    for (const definition of [
      LockTestingModule.forRoot(),
      LockTestingModule.forRoot({ isGlobal: undefined }),
      RedisLockModule.forRootAsync({ isGlobal: undefined, useFactory: () => ({ store: new MemoryLockStore() }) }),
    ]) {
      const global = await start({ imports: [definition, JobsModule] });
      expect(global.get(Jobs, { strict: false }).locks).toBe(global.get(LockService));
    }
    await expect(compile({ imports: [local, JobsModule] })).rejects.toThrow(/LockService/);
    const importing = await start({ imports: [local, ImportingModule] });
    expect(importing.get(Jobs, { strict: false }).locks).toBe(importing.get(LockService));
  });
});

describe('forRootAsync', () => {
  const store = new MemoryLockStore();
  const options: RedisLockOptions = { store, wait: 7 };

  @Injectable()
  class Factory implements RedisLockOptionsFactory {
    createRedisLockOptions = async () => options;
  }
  @Module({ providers: [Factory, { provide: 'options', useValue: options }], exports: [Factory, 'options'] })
  class ConfigModule {}

  it.each([
    [
      'useFactory and inject',
      { imports: [ConfigModule], inject: ['options'], useFactory: (given: RedisLockOptions) => given },
    ],
    ['an async useFactory', { useFactory: async () => options }],
    ['useClass', { useClass: Factory }],
    ['useExisting', { imports: [ConfigModule], useExisting: Factory }],
  ])('forRootAsync() takes its options from %s', async (_how, how) => {
    const module = await start({ imports: [RedisLockModule.forRootAsync(how)] });
    expect(await waitMsOf(module.get(LockService), store)).toBe(7);
  });

  it('forRootAsync() takes its name beside the factory', async () => {
    const module = await start({
      imports: [RedisLockModule.forRootAsync({ name: 'billing', useFactory: () => options })],
      providers: [Billing],
    });
    expect(module.get(Billing).locks.moduleName).toBe('billing');
  });

  it('forRootAsync() is not global with isGlobal: false', async () => {
    @Module({ providers: [Billing] })
    class BillingModule {}
    const local = RedisLockModule.forRootAsync({ name: 'billing', isGlobal: false, useFactory: () => options });
    await expect(compile({ imports: [local, BillingModule] })).rejects.toThrow(
      /can't resolve dependencies of the Billing/,
    );
  });

  it.each([
    ['a bad value', { lease: '1ms' }, /"lease" is "1ms"/],
    ['an unknown option', { retries: 3 }, /no option "retries"/],
    ['null', null, /object of options, not null/],
    ['nothing, because it forgot to', undefined, /object of options, not undefined/],
    ['isGlobal, which comes too late', { ...options, isGlobal: false }, /"isGlobal"/],
    ['a name, which it would not follow', { ...options, name: 'billing' }, /"name"/],
  ])('forRootAsync() refuses to boot when the factory returns %s', async (_what, returned, message) => {
    const booting = start({
      imports: [RedisLockModule.forRootAsync({ useFactory: () => returned as RedisLockOptions })],
    });
    await expect(booting).rejects.toBeInstanceOf(LockOptionsError);
    await expect(booting).rejects.toThrow(message);
  });
});

@Injectable()
class Billing {
  @InjectLocks('billing') readonly locks!: LockService;

  @WithLock('bill', { module: 'billing', wait: 0 })
  async pay() {
    return this.locks.current('bill')?.key;
  }
}

describe('several modules in one app', () => {
  it('several modules are told apart by @InjectLocks, and lock in their own stores', async () => {
    @Injectable()
    class Jobs {
      constructor(
        readonly locks: LockService,
        @InjectLocks() readonly same: LockService,
        @InjectLocks('billing') readonly billing: LockService,
      ) {}
    }
    const imports = [LockTestingModule.forRoot(), LockTestingModule.forRoot({ name: 'billing' })];
    const { locks, same, billing } = (await start({ imports, providers: [Jobs] })).get(Jobs);

    expect([locks.moduleName, billing.moduleName]).toEqual(['default', 'billing']);
    expect(same).toBe(locks);
    await locks.withLock('job', async () => expect(await billing.isLocked('job')).toBe(false));
  });

  it('several modules do not stop each other from wiring objects that useFactory built', async () => {
    const imports = [LockTestingModule.forRoot(), LockTestingModule.forRoot({ name: 'billing' })];
    const factory = {
      provide: 'made',
      inject: [Billing],
      useFactory: ({ locks }: Billing) => Object.assign(new Billing(), { locks }),
    };
    const module = await start({ imports, providers: [Billing, factory] });
    expect(await module.get<Billing>('made').pay()).toBe('bill');
  });

  it.each(['default', 'billing'])('two modules of one name, "%s", are an error at boot', async (name) => {
    const module = await compile({
      imports: [LockTestingModule.forRoot({ name }), LockTestingModule.forRoot({ name })],
    });
    const booting = module.init();
    await expect(booting).rejects.toBeInstanceOf(LockOptionsError);
    await expect(booting).rejects.toThrow(`named "${name}"`);
  });

  it('several modules may import one and the same definition', async () => {
    const locks = LockTestingModule.forRoot();
    @Module({ imports: [locks] })
    class JobsModule {}
    await expect(start({ imports: [locks, JobsModule] })).resolves.toBeDefined();
  });

  it('an app does not start when a class needs a module that does not exist', async () => {
    await expect(start({ imports: [LockTestingModule.forRoot()], providers: [Billing] })).rejects.toThrow(/billing/);
  });

  it('several modules end with the app, also a lazy one: its locks are released, and its store is closed', async () => {
    const store = new MemoryLockStore();
    let closed = 0;
    store.close = async () => void closed++;
    @Module({ imports: [RedisLockModule.forRoot({ name: 'billing', store, shutdownGrace: 0 })] })
    class LazyModule {}
    const app = await start({ imports: [LockTestingModule.forRoot()] });
    const billing = (await app.get(LazyModuleLoader).load(() => LazyModule)).get<LockService>(
      getLockServiceToken('billing'),
      { strict: false },
    );
    const lock = await billing.lock('job');

    await app.close();
    expect(lock.isHeld).toBe(false);
    expect([await store.isLocked('job'), closed]).toEqual([false, 1]);
  });
});
