import { afterEach, expect, it, jest } from '@jest/globals';
import { Inject, Injectable, type Provider } from '@nestjs/common';
import { Test, type TestingModule, type TestingModuleBuilder } from '@nestjs/testing';
import { getLockServiceToken, LockService, RedisLockModule, WithLock } from 'nest-redis-lock';
import { LockTestingModule, MemoryLockStore, TestLockService } from 'nest-redis-lock/testing';

@Injectable()
class Jobs {
  @Inject(LockService) readonly locks!: LockService;

  @WithLock('job', { wait: 0 })
  async run() {
    return 'ran';
  }
}

const open: TestingModule[] = [];

afterEach(async () => {
  for (const module of open.splice(0)) await module.close();
});

async function start(building: TestingModuleBuilder): Promise<TestingModule> {
  const module = await building.compile();
  open.push(module);
  return module.init();
}

const withMemory = (options = {}) =>
  Test.createTestingModule({ imports: [LockTestingModule.forRoot(options)], providers: [Jobs] });

it('a lock that a test has left behind holds up the end of its app no longer than a test runner allows', async () => {
  const module = await withMemory().compile();
  await module.get(LockService).lock('left behind');
  const startedAt = performance.now();
  await module.close();
  // What Jest allows for a hook; the default of an app is 10 s.
  expect(performance.now() - startedAt).toBeLessThan(5000);
});

it('LockTestingModule gives locks that really exclude', async () => {
  const jobs = (await start(withMemory())).get(Jobs);
  await using held = await jobs.locks.lock('job');
  await expect(jobs.run()).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
  held.assertHeld();
});

it('LockTestingModule wires the objects of a test that does not init()', async () => {
  const module = await withMemory().compile();
  open.push(module);
  expect(await module.get(Jobs).run()).toBe('ran');
});

it.each<[string, (building: TestingModuleBuilder) => TestingModuleBuilder]>([
  ['useValue', (building) => building.overrideProvider(Jobs).useValue(new Jobs())],
  ['useFactory', (building) => building.overrideProvider(Jobs).useFactory({ factory: () => new Jobs() })],
])('the error of an object that a test gives by %s says to call init(), which wires it', async (_how, given) => {
  const module = await given(withMemory()).compile();
  open.push(module);
  await expect(module.get(Jobs).run()).rejects.toThrow(/in a unit test.*await module\.init\(\)/);
  await module.init();
  expect(await module.get(Jobs).run()).toBe('ran');
});

it('LockTestingModule gives each test locks of its own, unless it is given the store', async () => {
  const store = new MemoryLockStore();
  const [own, one, two] = [
    await start(withMemory()),
    await start(withMemory({ store })),
    await start(withMemory({ store })),
  ];
  await using held = await one.get(LockService).lock('job');

  expect(await own.get(Jobs).run()).toBe('ran');
  await expect(two.get(Jobs).run()).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
  held.assertHeld();
});

const withRedis = (jobs: Provider) =>
  Test.createTestingModule({
    imports: [RedisLockModule.forRoot({ connection: 'redis://127.0.0.1:1' })],
    providers: [jobs],
  });

it.each<[string, Provider]>([
  ['a class', Jobs],
  ['an object that useFactory built', { provide: Jobs, useFactory: () => new Jobs() }],
])('overrideProvider(LockService) takes a fake of its public methods, for %s', async (_what, jobs) => {
  const withLock = jest.fn((_key: unknown, work: (lock: unknown) => unknown, _options: unknown) => work({}));
  const module = await start(withRedis(jobs).overrideProvider(LockService).useValue({ withLock }));

  expect(await module.get(Jobs).run()).toBe('ran');
  expect(withLock).toHaveBeenCalledWith('job', expect.any(Function), expect.objectContaining({ wait: 0 }));
});

it('overrideProvider(LockService) takes the LockService of another module', async () => {
  const other = await start(withMemory());
  const module = await start(withRedis(Jobs).overrideProvider(LockService).useValue(other.get(LockService)));
  expect(await module.get(Jobs).run()).toBe('ran');
});

it.each<[string, object, string, (building: TestingModuleBuilder) => TestingModuleBuilder]>([
  [
    'the default module',
    {},
    'overrideProvider(LockService).useClass(TestLockService)',
    (building) => building.overrideProvider(LockService).useClass(TestLockService),
  ],
  [
    'a named module',
    { name: 'billing' },
    'overrideProvider(getLockServiceToken("billing")).useValue(new TestLockService({ name: "billing" }))',
    (building) =>
      building.overrideProvider(getLockServiceToken('billing')).useValue(new TestLockService({ name: 'billing' })),
  ],
])(
  'the error of a LockTestingModule beside %s says how to replace the locks of an app',
  async (_which, named, remedy, replace) => {
    const app = (options: object) => RedisLockModule.forRoot({ ...options, ...named });
    const both = [app({ store: new MemoryLockStore() }), LockTestingModule.forRoot(named)];
    await expect(start(Test.createTestingModule({ imports: both }))).rejects.toThrow(
      `Potential solutions:\n- In a test, import no LockTestingModule beside the app. Replace the LockService of the app: ${remedy}.`,
    );

    const { name = 'default' } = named as { name?: string };
    const replaced = Test.createTestingModule({ imports: [app({ connection: 'redis://127.0.0.1:1' })] });
    const locks = (await start(replace(replaced))).get<LockService>(getLockServiceToken(name));
    expect(locks).toBeInstanceOf(TestLockService);
    expect(await locks.withLock('a', () => 'ran')).toBe('ran');
  },
);
