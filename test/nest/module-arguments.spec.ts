import { afterEach, describe, expect, it } from '@jest/globals';
import { Inject, Injectable, type ModuleMetadata, Scope } from '@nestjs/common';
import { INQUIRER, REQUEST } from '@nestjs/core';
import { Test, type TestingModule } from '@nestjs/testing';
import { Redis } from 'ioredis';
import {
  LockOptionsError,
  LockService,
  RedisLockModule,
  type RedisLockModuleOptions,
  type RedisLockOptionsFactory,
  WithLock,
} from 'nest-redis-lock';
import { LockTestingModule, MemoryLockStore, TestLockService } from 'nest-redis-lock/testing';

type AsyncOptions = Parameters<typeof RedisLockModule.forRootAsync>[0];

const open: TestingModule[] = [];

afterEach(async () => {
  for (const module of open.splice(0)) await module.close();
});

async function start(metadata: ModuleMetadata): Promise<TestingModule> {
  const module = await Test.createTestingModule(metadata)
    .setLogger(false as never)
    .compile();
  open.push(module);
  return module.init();
}

const forRoot = (options: unknown) => RedisLockModule.forRoot(options as RedisLockModuleOptions);
const forRootAsync = (options: unknown) => RedisLockModule.forRootAsync(options as AsyncOptions);
const useFactory = () => ({ store: new MemoryLockStore() });

class Config implements RedisLockOptionsFactory {
  createRedisLockOptions() {
    return useFactory();
  }
}

describe('forRoot()', () => {
  it.each<[unknown, string]>([
    [[], 'an array'],
    [null, 'null'],
    ['redis://127.0.0.1', '"redis://127.0.0.1"'],
    [6379, '6379'],
    [true, 'true'],
    [Config, 'a function'],
  ])('forRoot() refuses %p and says what it was given', (options, shown) => {
    for (const make of [
      () => forRoot(options),
      () => LockTestingModule.forRoot(options as object),
      () => new TestLockService(options as object),
    ]) {
      expect(make).toThrow(LockOptionsError);
      expect(make).toThrow(`RedisLockModule takes an object of options, not ${shown}.`);
    }
  });

  it.each<[what: string, options: unknown, shown: string]>([
    ['a URL', 'redis://:hunter2@127.0.0.1', '"redis://…@127.0.0.1"'],
    ['an object of URL', new URL('redis://:hunter2@127.0.0.1'), 'an object (URL)'],
    ['a client', new Redis({ lazyConnect: true, password: 'hunter2' }), 'an ioredis client'],
    ['several URLs', ['redis://:hunter2@127.0.0.1'], 'an array'],
  ])('forRoot() refuses %s, which belongs in "connection"', (_what, options, shown) => {
    expect(() => forRoot(options)).toThrow(
      `RedisLockModule takes an object of options, not ${shown}. Say where Redis is by the option "connection":`,
    );
  });

  it('forRoot() refuses a promise and says so', () => {
    expect(() => forRoot(Promise.resolve({ wait: 0 }))).toThrow(/can't be a promise/);
  });

  it('forRoot() refuses a Map, whose entries are no options', () => {
    expect(() => forRoot(new Map([['wait', 0]]))).toThrow(/There is no option "size"/);
  });
});

describe('forRootAsync()', () => {
  it.each<[what: string, options: unknown, message: RegExp]>([
    ['nothing', undefined, /takes an object with useFactory, useClass or useExisting, not undefined/],
    ['null', null, /not null/],
    ['an array', [], /not an array/],
    ['a factory that is given alone', useFactory, /not a function/],
    ['a promise', Promise.resolve({ useFactory }), /can't be a promise/],
    [
      'an object that has no factory',
      {},
      /takes one of useFactory, useClass and useExisting, but was given none of them/,
    ],
    ['an object with two factories', { useFactory, useClass: Config }, /but was given useFactory and useClass/],
    [
      'an option beside the factory',
      { useFactory, wait: '2s' },
      /"wait" does not belong in forRootAsync\(\), which would ignore it/,
    ],
    [
      'a getter of such an option',
      Object.create(
        {
          get wait() {
            return 0;
          },
        },
        { useFactory: { value: useFactory, enumerable: true } },
      ),
      /"wait" does not belong in forRootAsync/,
    ],
    [
      'a name that is misspelt',
      { useFactroy: useFactory },
      /There is no option "useFactroy"\. Did you mean "useFactory"\?/,
    ],
    [
      'options in the place of a factory',
      { useFactory: { wait: 0 } },
      /"useFactory" is an object \(Object\), but must be a function/,
    ],
    [
      'an object in the place of a class',
      { useClass: new Config() },
      /"useClass" is an object \(Config\), but must be a class/,
    ],
    ['nothing to use', { useExisting: null }, /"useExisting" is null, but must be a provider/],
    [
      'what is to be injected without an array',
      { useFactory, inject: Config },
      /"inject" is a function, but must be an array/,
    ],
    ['imports without an array', { useFactory, imports: Config }, /"imports" is a function, but must be an array/],
    [
      'an isGlobal that is no boolean',
      { useFactory, isGlobal: 'yes' },
      /"isGlobal" is "yes", but must be true or false/,
    ],
    ['a name that is none', { useFactory, name: '' }, /"name" is "", but must be a non-empty string/],
  ])('forRootAsync() refuses %s', (_what, options, message) => {
    expect(() => forRootAsync(options)).toThrow(LockOptionsError);
    expect(() => forRootAsync(options)).toThrow(message);
  });

  it.each<[what: unknown, message: RegExp]>([
    [undefined, /must return an object of options, not undefined/],
    [null, /must return an object of options, not null/],
    [[], /takes an object of options, not an array/],
    ['', /takes an object of options, not ""/],
    ['redis://127.0.0.1', /takes an object of options, not "redis/],
    [0, /takes an object of options, not 0/],
    [Config, /takes an object of options, not a function/],
    [Object.create({ name: 'billing' }), /"name" can't come from the factory/],
  ])('an app does not start when the factory of forRootAsync() returns %p', async (options, message) => {
    const booting = start({ imports: [forRootAsync({ useFactory: () => options })] });
    await expect(booting).rejects.toBeInstanceOf(LockOptionsError);
    await expect(booting).rejects.toThrow(message);
  });
});

class Misspelt {
  createRedisLockOption() {
    return useFactory();
  }
}

describe('providers of options', () => {
  const given = {
    module: class Given {},
    providers: [Misspelt, { provide: 'options', useValue: { wait: 0 } }],
    exports: [Misspelt, 'options'],
  };

  it.each<[what: string, options: unknown, message: string]>([
    [
      'a class without createRedisLockOptions()',
      { useClass: Misspelt },
      '"useClass" of RedisLockModule.forRootAsync() is Misspelt, which gives an object (Misspelt) without a ' +
        'method createRedisLockOptions().',
    ],
    [
      'a provider without it',
      { imports: [given], useExisting: Misspelt },
      '"useExisting" of RedisLockModule.forRootAsync() is Misspelt, which gives an object (Misspelt) without',
    ],
    [
      'options in the place of a provider',
      { imports: [given], useExisting: 'options' },
      '"useExisting" of RedisLockModule.forRootAsync() is "options", which gives an object',
    ],
  ])('an app does not start with %s', async (_what, options, message) => {
    const booting = start({ imports: [forRootAsync(options)] });
    await expect(booting).rejects.toBeInstanceOf(LockOptionsError);
    await expect(booting).rejects.toThrow(message);
  });
});

@Injectable({ scope: Scope.REQUEST })
class OfRequest {}

@Injectable()
class OnRequest {
  constructor(readonly request: OfRequest) {}
}

@Injectable()
class ByProperty {
  @Inject(OnRequest) readonly request!: OnRequest;
}

@Injectable({ scope: Scope.REQUEST })
class RequestConfig extends Config {}

@Injectable({ scope: Scope.TRANSIENT })
class TransientConfig extends Config {
  @Inject(INQUIRER) readonly inquirer!: object;
}

class Configs {}
const configs = {
  module: Configs,
  providers: [OfRequest, OnRequest, ByProperty, RequestConfig, TransientConfig],
  exports: [OfRequest, OnRequest, ByProperty, RequestConfig, TransientConfig],
};

describe('options that are made anew for each request', () => {
  let made = 0;
  const factory = () => {
    made++;
    return useFactory();
  };

  it.each<[what: string, options: AsyncOptions, culprit: string]>([
    ['the request itself', { inject: [REQUEST], useFactory: factory }, 'REQUEST'],
    ['a provider of the request', { imports: [configs], inject: [OfRequest], useFactory: factory }, 'OfRequest'],
    [
      'a provider whose constructor takes one of the request',
      { imports: [configs], inject: [OnRequest], useFactory: factory },
      'OfRequest',
    ],
    [
      'a provider that has one of the request in a property',
      { imports: [configs], inject: [ByProperty], useFactory: factory },
      'OfRequest',
    ],
    ['useClass of the request', { useClass: RequestConfig }, 'RequestConfig'],
    ['useExisting of the request', { imports: [configs], useExisting: RequestConfig }, 'RequestConfig'],
  ])(
    'an app does not start with options made for each request by %s: each request would get its own connections',
    async (_what, options, culprit) => {
      const booting = start({ imports: [RedisLockModule.forRootAsync(options)] });
      await expect(booting).rejects.toBeInstanceOf(LockOptionsError);
      await expect(booting).rejects.toThrow(
        `The options of RedisLockModule depend on ${culprit}, which is created for each request`,
      );
      expect(made).toBe(0);
    },
  );

  it('options made for each request are in one list with the other mistakes of the app', async () => {
    @Injectable()
    class Jobs {
      @WithLock('job:<jobId>')
      async run(id: string) {
        return id;
      }
    }
    const booting = start({
      imports: [RedisLockModule.forRootAsync({ inject: [REQUEST], useFactory })],
      providers: [Jobs],
    });
    await expect(booting).rejects.toThrow(/depend on REQUEST[^]*of Jobs\.run\(\) names <jobId>/);
  });

  it('an app starts with options from a transient provider, and has one LockService', async () => {
    @Injectable()
    class Jobs {
      constructor(readonly locks: LockService) {}
    }
    const module = await start({
      imports: [RedisLockModule.forRootAsync({ imports: [configs], inject: [TransientConfig], useFactory: factory })],
      providers: [Jobs],
    });
    expect(made).toBe(1);
    expect(module.get(Jobs).locks).toBe(module.get(LockService));
  });
});

/** Options that do not stand in the object itself. */
const INHERITED: [what: string, make: (options: object) => object][] = [
  ['on a prototype', (options) => Object.create(options) as object],
  [
    'on a prototype of a prototype without Object.prototype',
    (options) => Object.create(Object.assign(Object.create(null), options)) as object,
  ],
  [
    'in getters of a class',
    (options) => {
      class Options {}
      for (const [name, value] of Object.entries(options))
        Object.defineProperty(Options.prototype, name, { get: () => value as unknown, configurable: true });
      return new Options();
    },
  ],
  [
    'in fields of a class, of which one is inherited',
    (options) => {
      class Base {
        constructor() {
          Object.assign(this, options);
        }
      }
      return new (class extends Base {})();
    },
  ],
];

describe.each(INHERITED)('options that stand %s', (_what, make) => {
  async function waitOf(locks: LockService, options?: object): Promise<unknown> {
    await using held = await locks.lock('job');
    const waiting = locks.lock('job', { ...options, reentrant: true });
    const waited = await waiting.then(
      (lock) => lock.unlock(),
      (error: { waitMs: number }) => error.waitMs,
    );
    held.assertHeld();
    return waited;
  }

  it('inherited options of forRoot, forRootAsync and LockTestingModule count', async () => {
    const wait = 7;
    const store = () => new MemoryLockStore();
    for (const imports of [
      () => [RedisLockModule.forRoot(make({ store: store(), wait }))],
      () => [RedisLockModule.forRootAsync({ useFactory: () => make({ store: store(), wait }) })],
      () => [RedisLockModule.forRootAsync(make({ useFactory: () => ({ store: store(), wait }) }))],
      () => [LockTestingModule.forRoot(make({ wait }))],
    ]) {
      const module = await start({ imports: imports() });
      expect(await waitOf(module.get(LockService))).toBe(7);
    }
  });

  it('an inherited name of a module counts', async () => {
    const module = await start({ imports: [LockTestingModule.forRoot(make({ name: 'billing' }))] });
    expect(() => module.get(LockService)).toThrow();
  });

  it('inherited options of a call count', async () => {
    const locks = new TestLockService();
    await using held = await locks.lock('job');
    await expect(locks.lock('job', make({ wait: 3 }))).rejects.toMatchObject({ waitMs: 3 });
    await expect(locks.lock('job', make({ wiat: 3 }))).rejects.toThrow(/There is no option "wiat"/);
    held.assertHeld();
  });

  it('inherited options of @WithLock count', async () => {
    @Injectable()
    class Jobs {
      @WithLock('job', make({ wait: 3, onTimeout: ({ error }: { error: { waitMs: number } }) => error.waitMs }))
      async run(): Promise<unknown> {
        return 'ran';
      }
    }
    const module = await start({ imports: [LockTestingModule.forRoot()], providers: [Jobs] });
    await using held = await module.get(LockService).lock('job');
    expect(await module.get(Jobs).run()).toBe(3);
    held.assertHeld();
  });

  it('an unknown inherited option is refused', () => {
    expect(() => forRoot(make({ conection: 'redis://127.0.0.1' }))).toThrow(/There is no option "conection"/);
    expect(() => forRootAsync(make({ useFactory, wait: 0 }))).toThrow(/"wait" does not belong in forRootAsync/);
  });
});

it('a method of a class of options counts where it is an option', async () => {
  class Skip {
    wait = 0;

    onTimeout() {
      return 'busy';
    }

    other() {}
  }
  @Injectable()
  class Jobs {
    @WithLock('job', new Skip())
    async run() {
      return 'ran';
    }
  }
  const module = await start({ imports: [LockTestingModule.forRoot()], providers: [Jobs] });
  await using held = await module.get(LockService).lock('job');
  expect(await module.get(Jobs).run()).toBe('busy');
  held.assertHeld();
});

it('a signal or a promise in the place of the options of a call is refused', async () => {
  const locks = new TestLockService();
  await expect(locks.lock('job', new AbortController().signal as object)).rejects.toThrow(
    /There is no option "aborted"/,
  );
  await expect(locks.lock('job', Promise.resolve({ wait: 0 }) as object)).rejects.toThrow(/can't be a promise/);
});
