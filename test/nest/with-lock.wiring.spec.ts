import { afterEach, describe, expect, it } from '@jest/globals';
import { Inject, Injectable, type ModuleMetadata, type Provider } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { CurrentLock, type Lock, LockNotWiredError, LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule, MemoryLockStore } from 'nest-redis-lock/testing';
import { lastValueFrom, Observable, of } from 'rxjs';

const open: TestingModule[] = [];

afterEach(async () => {
  for (const module of open.splice(0)) await module.close();
});

async function start({
  imports = [LockTestingModule.forRoot({ wait: 0 })],
  ...metadata
}: ModuleMetadata): Promise<TestingModule> {
  const module = await Test.createTestingModule({ imports, ...metadata }).compile();
  open.push(module);
  return module.init();
}

@Injectable()
class Jobs {
  readonly ran: string[] = [];

  @WithLock('job:<id>')
  async run(id: string, @CurrentLock() lock?: Lock) {
    this.ran.push(id);
    return lock?.isHeld ? lock.key : 'not locked';
  }
}

describe('two apps in one process', () => {
  it('two apps in one process lock in the store of their own app', async () => {
    const [one, two] = [await start({ providers: [Jobs] }), await start({ providers: [Jobs] })];
    await using held = await one.get(LockService).lock('job:7');

    await expect(one.get(Jobs).run('7')).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    expect(await two.get(Jobs).run('7')).toBe('job:7');
    held.assertHeld();
  });

  it('two apps in one process exclude each other when they share the store', async () => {
    const imports = () => [LockTestingModule.forRoot({ store, wait: 0 })];
    const store = new MemoryLockStore();
    const [one, two] = [await start({ imports: imports() }), await start({ imports: imports(), providers: [Jobs] })];
    await using held = await one.get(LockService).lock('job:7');

    await expect(two.get(Jobs).run('7')).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    expect(two.get(Jobs).ran).toEqual([]);
    held.assertHeld();
  });
});

it.each([undefined, { a: 'mock' }])('a call gives what a mock of LockService returns: %j', async (value) => {
  @Injectable()
  class Plain {
    @WithLock('job:<id>')
    async run(id: string) {
      return id;
    }

    @WithLock('job:<id>')
    watch(id: string): Observable<string> {
      return of(id);
    }

    @WithLock('job:<id>')
    find(id: string): Promise<string> | AsyncIterator<string> {
      return Promise.resolve(id);
    }
  }

  const module = await Test.createTestingModule({
    providers: [Plain, { provide: LockService, useValue: { withLock: () => value } }],
  }).compile();
  open.push(module);
  const plain = module.get(Plain);
  const results = [await plain.run('7'), await lastValueFrom(plain.watch('7')), await plain.find('7')];
  expect(results).toEqual([value, value, value]);
});

const mockRequests = { attachError: () => ({ a: 'mock' }) };

it.each([undefined, mockRequests])('a call with a mock says what its key lacks: %j', async (requests) => {
  const module = await Test.createTestingModule({
    providers: [Jobs, { provide: LockService, useValue: { withLock: () => 'mock', requests } }],
  }).compile();
  open.push(module);
  const noId = undefined as unknown as string;
  await expect(module.get(Jobs).run(noId)).rejects.toMatchObject({ code: 'LOCK_KEY_INVALID' });
});

describe('a subclass', () => {
  it('a subclass inherits a locked method', async () => {
    @Injectable()
    class NightJobs extends Jobs {}

    const module = await start({ providers: [NightJobs] });
    expect(await module.get(NightJobs).run('7')).toBe('job:7');
  });

  it('a subclass with injected properties of its own inherits a locked method', async () => {
    @Injectable()
    class NamedJobs extends Jobs {
      @Inject('name') readonly name!: string;
    }

    const module = await start({ providers: [NamedJobs, { provide: 'name', useValue: 'night' }] });
    expect(await module.get(NamedJobs).run('7')).toBe('job:7');
    expect(module.get(NamedJobs).name).toBe('night');
  });

  it('a subclass takes the lock of the method it calls with super', async () => {
    @Injectable()
    class LoudJobs extends Jobs {
      override async run(id: string) {
        return `${await super.run(id)}!`;
      }
    }

    const module = await start({ providers: [LoudJobs] });
    expect(await module.get(LoudJobs).run('7')).toBe('job:7!');
  });

  it('a subclass takes the lock of its own key when it decorates an override', async () => {
    @Injectable()
    class OtherJobs extends Jobs {
      @WithLock('other:<jobId>')
      override async run(jobId: string, @CurrentLock() lock?: Lock) {
        return `${lock?.key} of ${jobId}`;
      }
    }

    const module = await start({ providers: [OtherJobs, Jobs] });
    expect(await module.get(OtherJobs).run('7')).toBe('other:7 of 7');
    expect(await module.get(Jobs).run('7')).toBe('job:7');
  });

  it('a subclass gets its own argument where only the overridden method asks for the lock', async () => {
    class Base {
      @WithLock('job:<id>')
      async run(id: string, @CurrentLock() second?: unknown) {
        return [id, second];
      }
    }

    @Injectable()
    class Overriding extends Base {
      @WithLock('job:<id>')
      override async run(id: string, second?: unknown) {
        return [id, second];
      }
    }

    const module = await start({ providers: [Overriding] });
    expect(await module.get(Overriding).run('7', 'mine')).toEqual(['7', 'mine']);
  });
});

it('two @WithLock on one method hold both locks, one inside the other', async () => {
  @Injectable()
  class Transfers {
    @Inject(LockService) readonly locks!: LockService;

    @WithLock('from:<from>')
    @WithLock('to:<to>')
    async transfer(from: string, to: string) {
      return [
        this.locks.current(`from:${from}`)?.isHeld,
        this.locks.current(`to:${to}`)?.isHeld,
        this.locks.current()?.key,
      ];
    }
  }

  const module = await start({ providers: [Transfers] });
  expect(await module.get(Transfers).transfer('1', '2')).toEqual([true, true, 'to:2']);
});

it('a method that only looks synchronous runs with its lock too, and its result comes as a promise', async () => {
  @Injectable()
  class Sums {
    @Inject(LockService) readonly locks!: LockService;

    // @ts-expect-error the compiler refuses it
    @WithLock('sum')
    add(one: number, two: number) {
      return this.locks.current('sum')?.isHeld && one + two;
    }
  }

  const module = await start({ providers: [Sums] });
  const sum: unknown = module.get(Sums).add(1, 2);
  expect(sum).toBeInstanceOf(Promise);
  expect(await sum).toBe(3);
});

it('a class takes its locks from several modules, each method from its own', async () => {
  @Injectable()
  class Both {
    @WithLock('job')
    async here(@CurrentLock() lock?: Lock) {
      return lock!.isHeld;
    }

    @WithLock('job', { module: 'billing' })
    async there(@CurrentLock() lock?: Lock) {
      return lock!.isHeld;
    }
  }

  const [here, there] = [new MemoryLockStore(), new MemoryLockStore()];
  const imports = [
    LockTestingModule.forRoot({ store: here, wait: 0 }),
    LockTestingModule.forRoot({ name: 'billing', store: there, wait: 0 }),
  ];
  for (const provider of [Both, { provide: Both, useFactory: () => new Both() }]) {
    const module = await start({ imports, providers: [provider] });
    await using held = await module.get(LockService).lock('job');
    await expect(module.get(Both).here()).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    expect(await module.get(Both).there()).toBe(true);
    held.assertHeld();
  }
});

describe('a copy of an object that has locked methods', () => {
  @Injectable()
  class Orders {
    manager = 'default';

    withManager(manager: string): Orders {
      return Object.assign(Object.create(Object.getPrototypeOf(this) as object) as Orders, this, { manager });
    }

    @WithLock('order:<id>')
    async confirm(id: string, @CurrentLock() lock?: Lock) {
      return `${id} by ${this.manager} in ${lock?.key}`;
    }
  }

  it.each<[string, Provider]>([
    ['that Nest built', Orders],
    ['that a factory made', { provide: Orders, useFactory: () => new Orders() }],
  ])('a copy of an object %s takes the lock too', async (_what, provider) => {
    const module = await start({ providers: [provider] });
    expect(await module.get(Orders).withManager('tx').confirm('7')).toBe('7 by tx in order:7');
    expect(JSON.stringify(module.get(Orders))).toBe('{"manager":"default"}');
  });
});

describe('an object that Nest did not construct', () => {
  it.each([
    ['useFactory', { provide: Jobs, useFactory: () => new Jobs() }],
    ['an async useFactory', { provide: Jobs, useFactory: async () => new Jobs() }],
    ['useValue', { provide: Jobs, useValue: new Jobs() }],
  ])('an object that the app provides with %s takes its locks', async (_how, provider) => {
    const module = await start({ providers: [provider] });
    await using held = await module.get(LockService).lock('job:7');

    await expect(module.get(Jobs).run('7')).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    expect(await module.get(Jobs).run('8')).toBe('job:8');
    expect(module.get(Jobs).ran).toEqual(['8']);
    held.assertHeld();
  });

  it('an object that Nest does not know rejects with LockNotWiredError, and the body does not run', async () => {
    await start({ providers: [Jobs] });
    const jobs = new Jobs();
    const call = jobs.run('7');

    await expect(call).rejects.toBeInstanceOf(LockNotWiredError);
    await expect(call).rejects.toThrow(/Jobs\.run\(\).*did not run.*RedisLockModule/);
    expect(jobs.ran).toEqual([]);
  });

  it.each([
    ['a class', (type: new () => Jobs) => ({ provide: Jobs, useClass: type })],
    ['a factory', (type: new () => Jobs) => ({ provide: Jobs, useFactory: () => new type() })],
  ])('an object rejects a call in its constructor, in the provider of %s', async (_what, provider) => {
    let call: Promise<string> | undefined;
    @Injectable()
    class Eager extends Jobs {
      constructor() {
        super();
        call = this.run('7');
        call.catch(() => undefined);
      }
    }
    const module = await start({ providers: [provider(Eager)] });
    await expect(call).rejects.toBeInstanceOf(LockNotWiredError);
    await expect(call).rejects.toThrow(/called in a constructor.*call it in onModuleInit\(\) or later/);
    expect(module.get(Jobs).ran).toEqual([]);
    expect(await module.get(Jobs).run('8')).toBe('job:8');
  });

  it('an object rejects with LockNotWiredError where its method has lost its "this"', async () => {
    const module = await start({ providers: [Jobs] });
    const jobs = module.get(Jobs);

    await expect(jobs.run.call(undefined as unknown as Jobs, '7')).rejects.toBeInstanceOf(LockNotWiredError);
    expect(jobs.ran).toEqual([]);
  });
});
