import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { HealthIndicatorService } from '@nestjs/terminus';
import { Test, type TestingModule } from '@nestjs/testing';
import {
  InjectLocks,
  type Lock,
  LockNotWiredError,
  LockOptionsError,
  RedisLockModule,
  WithLock,
} from 'nest-redis-lock';
import { LockHealthIndicator } from 'nest-redis-lock/terminus';
import { LockTestingModule, TestLockService } from 'nest-redis-lock/testing';

type Given = Readonly<Record<string, unknown>>;
type Attempt = (options: Given) => unknown;

const text = 'nonsense';
const call = () => undefined;
const none: unknown[] = [];
const many = 1e300;

/** What must not be undefined where it is given: `replicas` has no default. */
const WHERE = ['connection', 'store', 'keyPrefix', 'name', 'module', 'token', 'replicas'];

/** What other specs, or other ways, see to. */
const ELSEWHERE = [
  'connection',
  'durability',
  'name',
  'isGlobal',
  'useFactory',
  'useClass',
  'useExisting',
  'provideInjectionTokensFrom',
];

/** Values of all kinds; most options take at most one of them. */
const VALUES = [null, NaN, -1, 1.5, many, true, '', text, {}, none, call, 10n, Symbol('s'), new Date(0)];

const TERMS: Readonly<Record<string, readonly unknown[]>> = {
  wait: [1.5],
  lease: [],
  watchdog: [true],
  maxHold: [1.5],
  warnAfter: [1.5],
  maxWaiters: [many],
  reentrant: [true],
};
const OF_A_CALL = {
  ...TERMS,
  mode: [],
  permits: [],
  fair: [true],
  atLeast: [1.5],
  label: [text],
  signal: [],
  onLost: [],
};
const OF_A_MODULE = {
  ...TERMS,
  commandTimeout: [],
  shutdownGrace: [1.5],
  keyPrefix: ['', text],
  store: [],
  http: [true],
  name: [text],
  isGlobal: [true],
  exceptionFactory: [call],
};
const OF_DURABILITY = { replicas: [], timeout: [1.5], aof: [true] };

let module: TestingModule;
let locks: TestLockService;
let held: Lock;

beforeAll(async () => {
  module = await Test.createTestingModule({
    imports: [LockTestingModule.forRoot()],
    providers: [LockHealthIndicator, HealthIndicatorService],
  }).compile();
  locks = module.get(TestLockService);
  held = await locks.lock('held', { lease: '10m' });
});

afterAll(async () => {
  await held.unlock();
  await module.close();
});

/** What is wrong with the options is told by each call, before it looks for its module. */
async function guarded(options: Given): Promise<void> {
  class Jobs {
    @WithLock('job', options as { wait: 0 })
    async run() {}
  }
  await new Jobs().run().catch((error: unknown) => {
    if (!(error instanceof LockNotWiredError)) throw error;
  });
}

const fromFactory = async (options: Given) => {
  const made = await Test.createTestingModule({
    imports: [RedisLockModule.forRootAsync({ useFactory: () => options })],
  }).compile();
  await made.close();
};

/** Each way to give options, the options that it takes, and the values that each of them takes. */
const WAYS: readonly [way: string, attempt: Attempt, taken: Readonly<Record<string, readonly unknown[]>>][] = [
  ['withLock', (options) => locks.withLock('a', call, options), OF_A_CALL],
  ['lock', (options) => locks.lock('a', options).then((lock) => lock.unlock()), OF_A_CALL],
  ['tryLock', (options) => locks.tryLock('a', options).then((lock) => lock?.unlock()), OF_A_CALL],
  ['@WithLock', guarded, { ...OF_A_CALL, module: [text], onTimeout: [call], scope: [] }],
  ['forceUnlock', (options) => locks.forceUnlock('nobody', options), { token: [text], by: [text], reason: [text] }],
  ['forRoot', (options) => RedisLockModule.forRoot(options), { ...OF_A_MODULE, durability: [] }],
  [
    'the factory of forRootAsync',
    fromFactory,
    {
      ...TERMS,
      commandTimeout: [],
      shutdownGrace: [1.5],
      keyPrefix: ['', text],
      store: [],
      http: [true],
      exceptionFactory: [call],
      connection: [],
      durability: [],
    },
  ],
  [
    'forRootAsync',
    (options) => RedisLockModule.forRootAsync({ useFactory: () => ({}), ...options }),
    { name: [text], isGlobal: [true], inject: [none], imports: [none] },
  ],
  [
    'durability',
    (durability) => RedisLockModule.forRoot({ durability: { replicas: 1, ...durability } as never }),
    OF_DURABILITY,
  ],
  ['LockTestingModule', (options) => LockTestingModule.forRoot(options), OF_A_MODULE],
  ['TestLockService', (options) => new TestLockService(options), OF_A_MODULE],
  ['isHealthy', (options) => module.get(LockHealthIndicator).isHealthy('locks', options), { module: [text] }],
  [
    'simulate',
    (options) => locks.simulate(options),
    { busy: [true, text, none], lost: [true, text, none], down: [true] },
  ],
];

/** Answers the detail of the error, or that there was none. */
async function refusal(attempt: () => unknown): Promise<string> {
  try {
    await attempt();
    return 'taken';
  } catch (error) {
    expect(error).toBeInstanceOf(LockOptionsError);
    return (error as LockOptionsError).detail;
  }
}

describe.each(WAYS)('%s', (way, attempt, taken) => {
  const prefix = way === 'durability' ? 'durability.' : '';
  const names = Object.keys(taken);

  it.each(names)('an invalid "%s" is refused, by its name and with the value', async (name) => {
    const refused = VALUES.filter((value) => !taken[name]!.includes(value));
    for (const value of refused) {
      const detail = await refusal(() => attempt({ [name]: value }));
      expect([typeof value, value, detail]).toEqual([
        typeof value,
        value,
        expect.stringContaining(`"${prefix}${name}`),
      ]);
    }
    if (way === 'simulate') locks.reset();
  });

  it('an unknown name is refused, with the nearest known one, also when its value is undefined', async () => {
    for (const name of names) {
      for (const value of [1, undefined]) {
        const detail = await refusal(() => attempt({ [`${name}z`]: value }));
        expect(detail).toContain(`"${prefix}${name}z"`);
        expect(detail).toContain(`Did you mean "${prefix}${name}"?`);
      }
    }
  });

  it('the error about an unknown name lists no option that these tests miss', async () => {
    const known = /Known options: (.*)\./.exec(await refusal(() => attempt({ quux: 1 })));
    for (const name of known?.[1]?.split(', ') ?? [])
      expect([...names.map((name) => prefix + name), ...ELSEWHERE]).toContain(name);
  });

  it('an option that is undefined counts as left out, unless it says where a lock lives, or whose it is', async () => {
    for (const name of names) {
      // A test module has a store already.
      const isTold = WHERE.includes(name) && !(name === 'store' && way.includes('Test'));
      const answer = await refusal(() => attempt({ [name]: undefined }));
      expect([name, answer]).toEqual([
        name,
        isTold ? expect.stringContaining(`"${prefix}${name}" is undefined`) : 'taken',
      ]);
    }
  });
});

it.each(['connection', 'durability'])(
  '"%s" is refused by the modules for tests, which keep their locks in memory',
  async (name) => {
    for (const attempt of [
      (options: Given) => LockTestingModule.forRoot(options),
      (options: Given) => new TestLockService(options),
    ]) {
      expect(await refusal(() => attempt({ [name]: 'redis://127.0.0.1' }))).toBe(
        `"${name}" is about Redis, but the locks of a test live in memory. Leave it out.`,
      );
    }
  },
);

it('@InjectLocks refuses a name that is undefined, such as a constant of a circular import', async () => {
  expect(await refusal(() => InjectLocks(undefined))).toMatch(/"module" is undefined/);
  expect(await refusal(() => InjectLocks())).toBe('taken');
});

it('extend() refuses what is no lease', async () => {
  for (const value of VALUES) expect(await refusal(() => held.extend(value as number))).toContain('"lease" is ');
});

it('inspect(), isLocked() and forceUnlock() refuse what is no key', async () => {
  for (const value of VALUES.filter((value) => value !== text)) {
    for (const ask of [
      (key: string) => locks.inspect(key),
      (key: string) => locks.isLocked(key),
      (key: string) => locks.forceUnlock(key),
    ]) {
      await expect(ask(value as string)).rejects.toMatchObject({ code: 'LOCK_KEY_INVALID' });
    }
  }
});
