/* eslint-disable @typescript-eslint/unbound-method */
import { mock } from 'node:test';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import {
  type DynamicModule,
  Global,
  Inject,
  Injectable,
  Module,
  type OnModuleInit,
  type Provider,
  Scope,
  type Type,
} from '@nestjs/common';
import { DiscoveryModule, DiscoveryService, LazyModuleLoader, ModuleRef } from '@nestjs/core';
import { Test, type TestingModule } from '@nestjs/testing';
import { CurrentLock, type Lock, LockOptionsError, LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';

const RUN = 'run';
const SYMBOL = Symbol('run');

@Injectable()
class Jobs {
  @WithLock('job:<id>')
  async run(id: string, @CurrentLock() lock?: Lock): Promise<string> {
    return lock?.isHeld ? `${id} in its lock` : `${id} without`;
  }
}

@Injectable()
class SymbolJobs {
  @WithLock('job:<0>')
  async [SYMBOL](id: string, @CurrentLock() lock?: Lock): Promise<string> {
    return lock?.isHeld ? `${id} in its lock` : `${id} without`;
  }
}

/** What a body that runs without the lock leaves behind. */
const ran: string[] = [];
const open: TestingModule[] = [];

beforeEach(() => {
  ran.length = 0;
});

afterEach(async () => {
  for (const module of open.splice(0)) await module.close();
});

async function compile(providers: Provider[]): Promise<TestingModule> {
  const module = await Test.createTestingModule({ imports: [LockTestingModule.forRoot({ wait: 0 })], providers })
    .setLogger(false as never)
    .compile();
  open.push(module);
  return module;
}

/** A decorator that puts a plain function around a method. */
const Logged: MethodDecorator = (_prototype, _name, descriptor) => {
  const method = descriptor.value as (...args: unknown[]) => unknown;
  descriptor.value = function (this: unknown, ...args: unknown[]) {
    return method.apply(this, args);
  } as typeof descriptor.value;
};

/**
 * Puts a function around a method as tracing and metrics tools for Nest do: with the metadata, which routes and
 * handlers are known by.
 */
function traced<M extends (...args: never[]) => unknown>(method: M): M {
  const wrapper = function (this: unknown, ...args: never[]) {
    return method.apply(this, args);
  } as M;
  for (const key of Reflect.getMetadataKeys(method) as unknown[])
    Reflect.defineMetadata(key, Reflect.getMetadata(key, method), wrapper);
  return wrapper;
}

const Traced: MethodDecorator = (_prototype, _name, descriptor) => {
  descriptor.value = traced(descriptor.value as never);
};

const forget = async (id: string) => `${id}: ${ran.push(id)}`;

const forgetAs = (name: string) => Object.defineProperty(async (id: string) => forget(id), 'name', { value: name });

/** A decorator that puts a function of the same name around a method. */
const Renamed: MethodDecorator = (_prototype, name, descriptor) => {
  const method = descriptor.value as (...args: unknown[]) => unknown;
  const wrapper = function (this: unknown, ...args: unknown[]) {
    return method.apply(this, args);
  };
  descriptor.value = Object.defineProperty(wrapper, 'name', { value: name }) as typeof descriptor.value;
};

/** As `bind-decorator` does: whoever reads the method gets it bound, and keeps it. */
const BindWhenRead = (_prototype: object, name: string, { value }: PropertyDescriptor): PropertyDescriptor => ({
  configurable: true,
  get(this: object): unknown {
    const method: unknown = (value as Jobs['run']).bind(this as Jobs);
    Object.defineProperty(this, name, { value: method, configurable: true, writable: true });
    return method;
  },
});

/** Makes a class from its source as a compiler for an older target writes it. */
function compiled(source: string): Type<Jobs> {
  // eslint-disable-next-line @typescript-eslint/no-implied-eval
  return (new Function('Jobs', 'ran', `return ${source}`) as (...args: unknown[]) => Type<Jobs>)(Jobs, ran);
}

const HELPER = 'const helper = (self, body) => new Promise((resolve) => resolve(body.call(self).next().value));';

/** Subclasses whose method would run without the lock of the method that it hides. */
const LOST: [how: string, make: () => Type<Jobs>][] = [
  [
    'an override without a decorator',
    () =>
      class extends Jobs {
        override run = undefined as never;
      },
  ],
  [
    'a method whose name is a text in brackets',
    () =>
      class extends Jobs {
        override async ['run'](id: string) {
          return forget(id);
        }
      },
  ],
  [
    'a method whose name is a constant in brackets',
    () =>
      class extends Jobs {
        override async [RUN](id: string) {
          return forget(id);
        }
      },
  ],
  [
    'such a method below another decorator',
    () => {
      class Computed extends Jobs {
        @Logged
        override async [RUN](id: string) {
          return forget(id);
        }
      }
      return Computed;
    },
  ],
  [
    'a body that only mentions super.run',
    () =>
      class extends Jobs {
        override async run(id: string) {
          return forget(super.run.name + id);
        }
      },
  ],
  [
    'a body that calls another method of super by a variable',
    () =>
      class extends Jobs {
        override async run(id: string) {
          const name = 'toString';
          return forget(super[name]() + id);
        }
      },
  ],
  [
    'a body that passes super.run on',
    () =>
      class extends Jobs {
        override async run(id: string) {
          return forget([super.run].length + id);
        }
      },
  ],
  [
    'a body with a class inside that calls its own super.run',
    () =>
      class extends Jobs {
        override async run(id: string) {
          class Inner extends Jobs {
            override async run(inner: string) {
              return super.run(inner);
            }
          }
          return forget(Inner.name + id);
        }
      },
  ],
  [
    'a body with an object inside that calls its own super.run',
    () =>
      class extends Jobs {
        override async run(id: string) {
          const inner = {
            async run(): Promise<unknown> {
              return (super.toString as unknown as { run?: () => unknown }).run?.();
            },
          };
          return forget(Object.keys(inner).length + id);
        }
      },
  ],
  ['a getter', () => compiled('class extends Jobs { get run() { return async (id) => ran.push(id); } }')],
  [
    'a class field',
    () =>
      class extends Jobs {
        override run = async (id: string) => forget(id);
      },
  ],
  [
    'a class field whose name is a constant in brackets',
    () =>
      class extends Jobs {
        override [RUN] = async (id: string) => forget(id);
      },
  ],
  [
    'a class field with a bound function of its own',
    () =>
      class extends Jobs {
        override run = forget.bind(undefined);
      },
  ],
  [
    'a class field that is filled by a factory',
    () =>
      class extends Jobs {
        override run = ((method: unknown) => (method ? forget : forget))(super.run);
      },
  ],
  [
    'a class field with a function that is written elsewhere',
    () =>
      class extends Jobs {
        override run = forget;
      },
  ],
  ['a class field that nothing fills', () => compiled('class extends Jobs { run; }')],
  [
    'a property that the constructor sets',
    () =>
      class extends Jobs {
        constructor() {
          super();
          this.run = async (id) => forget(id);
        }
      },
  ],
  [
    'a property that Object.assign sets',
    () =>
      class extends Jobs {
        constructor() {
          super();
          Object.assign(this, { run: forget });
        }
      },
  ],
  [
    'a class field with a bound function of another object that has the name of the method',
    () => {
      class RenamedJobs {
        @Renamed
        @(WithLock('job:<id>') as MethodDecorator)
        async run(id: string) {
          return forget(id);
        }
      }
      return class extends RenamedJobs {
        readonly helper = { run: forgetAs('run') };
        override run = this.helper.run.bind(this.helper);
      };
    },
  ],
  [
    'an override that a tool wraps',
    () => {
      class Wrapped extends Jobs {
        override async run(id: string) {
          return forget(id);
        }
      }
      Wrapped.prototype.run = traced(Wrapped.prototype.run);
      return Wrapped;
    },
  ],
  [
    'an override that has the metadata of the locked method',
    () => {
      class Copied extends Jobs {
        override async run(id: string) {
          return forget(id);
        }
      }
      const locked = Jobs.prototype.run;
      for (const key of Reflect.getMetadataKeys(locked) as unknown[])
        Reflect.defineMetadata(key, Reflect.getMetadata(key, locked), Copied.prototype.run);
      return Copied;
    },
  ],
  [
    'a mixin that copies a method',
    () => {
      class Mixed extends Jobs {}
      Object.assign(Mixed.prototype, { run: forget });
      return Mixed;
    },
  ],
  [
    'a mixin whose method calls the super of another object',
    () => {
      class Mixed extends Jobs {}
      class Other extends Jobs {
        override async run(id: string) {
          ran.push(id);
          return super.run(id);
        }
      }
      Object.defineProperty(Mixed.prototype, 'run', {
        value: Object.getOwnPropertyDescriptor(Other.prototype, 'run')!.value,
        configurable: true,
        writable: true,
      });
      return Mixed;
    },
  ],
  [
    'a mixin that makes a class',
    () => {
      const Mixin = (Base: Type<Jobs>) =>
        class Mixed extends Base {
          override async run(id: string) {
            return forget(id);
          }
        };
      return Mixin(Jobs);
    },
  ],
  [
    'the middle one of three classes',
    () => {
      abstract class Middle extends Jobs {
        override async ['run'](id: string) {
          return forget(id);
        }
      }
      return class extends Middle {
        override async run(id: string) {
          return super.run(id);
        }
      };
    },
  ],
  [
    'a method that an older target compiles, which only mentions super.run',
    () =>
      compiled(
        `class extends Jobs { run(id) { ${HELPER} ` +
          'const _super = Object.create(null, { run: { get: () => super.run } }); ' +
          'return helper(this, function* () { yield ran.push(id, _super.run.name); }); } }',
      ),
  ],
];

/** Subclasses whose method takes the lock of the method that it hides. */
const KEPT: [how: string, make: () => Type<Jobs>][] = [
  [
    'a call of super',
    () =>
      class extends Jobs {
        override async run(id: string) {
          return super.run(id);
        }
      },
  ],
  [
    'a call of super by its name in brackets',
    () =>
      class extends Jobs {
        override async run(id: string) {
          return super['run'](id);
        }
      },
  ],
  [
    'a call of super by the constant that names the method',
    () =>
      class extends Jobs {
        override async [RUN](id: string) {
          return super[RUN](id);
        }
      },
  ],
  [
    'a call of super by call',
    () =>
      class extends Jobs {
        override async run(id: string) {
          return super.run.call(this, id);
        }
      },
  ],
  [
    'a call of super by apply',
    () =>
      class extends Jobs {
        override async run(...args: [string]) {
          return super.run.apply(this, args);
        }
      },
  ],
  [
    'a call of super below another decorator',
    () => {
      class Decorated extends Jobs {
        @Logged
        override async run(id: string) {
          return super.run(id);
        }
      }
      return Decorated;
    },
  ],
  [
    'a class field that calls super',
    () =>
      class extends Jobs {
        override run = async (id: string) => super.run(id);
      },
  ],
  [
    'a class field that is the method itself, bound',
    () =>
      class extends Jobs {
        override run = super.run.bind(this);
      },
  ],
  [
    'a constructor that binds the method',
    () =>
      class extends Jobs {
        constructor() {
          super();
          this.run = this.run.bind(this);
        }
      },
  ],
  [
    'a constructor that binds a method which has another decorator above its lock',
    () => {
      class Decorated {
        constructor() {
          this.run = this.run.bind(this);
        }

        @Logged
        @(WithLock('job:<id>') as MethodDecorator)
        async run(id: string, @CurrentLock() lock?: Lock) {
          return lock?.isHeld ? `${id} in its lock` : `${id} without`;
        }
      }
      return Decorated;
    },
  ],
  [
    'a decorator that binds the method to each object which first reads it',
    () => {
      class BoundWhenRead {
        @BindWhenRead
        @(WithLock('job:<id>') as MethodDecorator)
        async run(id: string, @CurrentLock() lock?: Lock) {
          return lock?.isHeld ? `${id} in its lock` : `${id} without`;
        }
      }
      return BoundWhenRead;
    },
  ],
  [
    'a class field that binds a method which a tool has wrapped',
    () => {
      class Wrapped {
        @Traced
        @(WithLock('job:<id>') as MethodDecorator)
        async run(id: string, @CurrentLock() lock?: Lock) {
          return lock?.isHeld ? `${id} in its lock` : `${id} without`;
        }
      }
      return class extends Wrapped {
        override run = super.run.bind(this);
      };
    },
  ],
  [
    'a tool that wraps the inherited method on the class, with its metadata',
    () => {
      class Wrapped extends Jobs {}
      Wrapped.prototype.run = traced(Wrapped.prototype.run);
      return Wrapped;
    },
  ],
  [
    'two tools that wrap the inherited method on the class, one around the other',
    () => {
      class Wrapped extends Jobs {}
      Wrapped.prototype.run = traced(traced(Wrapped.prototype.run));
      return Wrapped;
    },
  ],
  [
    'a tool that wraps the method on the object, with its metadata',
    () =>
      class extends Jobs {
        constructor() {
          super();
          this.run = traced(this.run);
        }
      },
  ],
  [
    'a tool that wraps an override which calls super',
    () => {
      class Wrapped extends Jobs {
        override async run(id: string) {
          return super.run(id);
        }
      }
      Wrapped.prototype.run = traced(Wrapped.prototype.run);
      return Wrapped;
    },
  ],
  [
    'a mixin that copies the locked method itself',
    () => {
      class Mixed extends Jobs {}
      Object.defineProperty(Mixed.prototype, 'run', Object.getOwnPropertyDescriptor(Jobs.prototype, 'run')!);
      return Mixed;
    },
  ],
  [
    'a Proxy around the locked method',
    () => {
      class Proxied extends Jobs {}
      Proxied.prototype.run = new Proxy(
        Object.getOwnPropertyDescriptor(Jobs.prototype, 'run')!.value as Jobs['run'],
        {},
      );
      return Proxied;
    },
  ],
  [
    'three classes, of which the middle one has no such method',
    () => {
      class Middle extends Jobs {}
      return class extends Middle {
        override async run(id: string) {
          return super.run(id);
        }
      };
    },
  ],
  [
    'a method that TypeScript compiles for an older target',
    () =>
      compiled(
        `class extends Jobs { run(id) { ${HELPER} ` +
          'const _super = Object.create(null, { run: { get: () => super.run } }); ' +
          'return helper(this, function* () { yield _super.run.call(this, id); }); } }',
      ),
  ],
  [
    'a method that SWC compiles for an older target',
    () =>
      compiled(
        `class extends Jobs { run(id) { ${HELPER} var _this = this, _superprop_get_run = ()=>super.run; ` +
          'return helper(this, function* () { yield _superprop_get_run().call(_this, id); }); } }',
      ),
  ],
  [
    "a method with super['run'] that a compiler writes for an older target",
    () =>
      compiled(
        `class extends Jobs { run(id) { ${HELPER} const _superIndex = name => super[name]; ` +
          "return helper(this, function* () { yield _superIndex('run').call(this, id); }); } }",
      ),
  ],
];

/** As Nest builds it, or is given it. */
const WAYS: [way: string, provider: (type: Type<Jobs>) => Provider][] = [
  ['a class', (type) => ({ provide: Jobs, useClass: (Injectable()(type) as never) ?? type })],
  ['a factory', (type) => ({ provide: Jobs, useFactory: () => new type() })],
];

describe.each(WAYS)('in the provider of %s,', (_way, provider) => {
  it.each(LOST)('an app does not start with %s, and before it starts no call runs', async (_how, make) => {
    const type = make();
    const module = await compile([provider(type)]);
    const isBuilt = !(provider(type) as { useFactory?: unknown }).useFactory;
    if (isBuilt) await expect((async () => module.get(Jobs).run('7'))()).rejects.toBeInstanceOf(LockOptionsError);
    const booting = module.init();
    await expect(booting).rejects.toBeInstanceOf(LockOptionsError);
    await expect(booting).rejects.toThrow(/(overrides|hides) (Renamed)?Jobs\.run\(\), which has @WithLock/);
    await expect((async () => module.get(Jobs).run('7'))()).rejects.toBeInstanceOf(LockOptionsError);
    expect(ran).toEqual([]);
  });

  it.each(KEPT)('the lock is taken by %s', async (_how, make) => {
    const module = await compile([provider(make())]);
    await module.init();
    expect(await module.get(Jobs).run('7')).toBe('7 in its lock');
  });
});

describe('the lock stays around a method', () => {
  /** Puts a plain function around the method that it finds in the class, not in the descriptor. */
  const WrapsWhatTheClassHas: MethodDecorator = (prototype, name, descriptor) => {
    const method = (prototype as Record<PropertyKey, (...args: unknown[]) => unknown>)[name]!;
    const wrapper = function (this: unknown, ...args: unknown[]) {
      return method.apply(this, args);
    };
    return { ...descriptor, value: wrapper as never };
  };

  /** Gives the method a lock, as a decorator of classes may do for each of theirs. */
  const LockedRun: ClassDecorator = ({ prototype }) => {
    const descriptor = Object.getOwnPropertyDescriptor(prototype, RUN)!;
    WithLock('job:<id>')(prototype as object, RUN, descriptor as TypedPropertyDescriptor<() => Promise<unknown>>);
  };

  it('that a decorator above takes from the class', async () => {
    class Wrapped {
      @WrapsWhatTheClassHas
      @WithLock('job:<id>')
      async run(id: string, @CurrentLock() lock?: Lock): Promise<string> {
        return lock?.isHeld ? `${id} in its lock` : `${id} without`;
      }
    }
    const module = await compile([Wrapped]);
    await module.init();
    expect(await module.get(Wrapped).run('7')).toBe('7 in its lock');
  });

  it('that gets @WithLock by a call of the decorator, which nobody writes into the class', async () => {
    @LockedRun
    class Called {
      async run(id: string, @CurrentLock() lock?: Lock): Promise<string> {
        return lock?.isHeld ? `${id} in its lock` : `${id} without`;
      }
    }
    const module = await compile([Called]);
    await module.init();
    expect(await module.get(Called).run('7')).toBe('7 in its lock');
  });
});

describe('where Nest builds the object later,', () => {
  it.each(LOST)('no call runs in a provider of a request with %s', async (_how, make) => {
    const module = await compile([{ provide: Jobs, scope: Scope.REQUEST, useClass: make() }]);
    await module.init().catch((error: unknown) => expect(error).toBeInstanceOf(LockOptionsError));
    const jobs = await module.resolve(Jobs);
    await expect((async () => jobs.run('7'))()).rejects.toBeInstanceOf(LockOptionsError);
    expect(ran).toEqual([]);
  });

  it('an app does not start with a field in a provider of a request', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class LateJobs extends Jobs {
      override run = async (id: string) => forget(id);
    }
    const module = await compile([LateJobs]);
    await expect(module.init()).rejects.toThrow(/^LateJobs\.run\(\) overrides Jobs\.run\(\), which has @WithLock/);
  });

  it.each(LOST)('no call runs on an object of ModuleRef.create with %s', async (_how, make) => {
    const module = await compile([]);
    await module.init();
    const jobs = await module.get(ModuleRef).create(make());
    await expect((async () => jobs.run('7'))()).rejects.toBeInstanceOf(LockOptionsError);
    expect(ran).toEqual([]);
  });

  describe('a lazy module', () => {
    class Lazy {}
    const lazy = (...providers: Provider[]): DynamicModule => ({ module: Lazy, providers });

    it.each(WAYS)(
      'a lazy module never loads with an override that has lost its lock, in the provider of %s',
      async (_way, provider) => {
        class NightJobs extends Jobs {
          override async run(id: string) {
            return forget(id);
          }
        }
        const module = await compile([]);
        await module.init();
        const loader = module.get(LazyModuleLoader);
        const definition = lazy(provider(NightJobs));
        for (let attempt = 0; attempt < 2; attempt++) {
          const loading = loader.load(() => definition);
          await expect(loading).rejects.toBeInstanceOf(LockOptionsError);
          await expect(loading).rejects.toThrow(/^NightJobs\.run\(\) overrides Jobs\.run\(\), which has @WithLock/);
        }
      },
    );

    it('a lazy module that does not load says all its mistakes in one list', async () => {
      class NightJobs extends Jobs {
        override async run(id: string) {
          return forget(id);
        }
      }
      class Orders {
        @WithLock('order:<orderId>')
        async confirm(id: string) {
          return id;
        }
      }
      const module = await compile([]);
      await module.init();
      const loading = module.get(LazyModuleLoader).load(() => lazy(NightJobs, Orders));
      await expect(loading).rejects.toThrow(/NightJobs\.run\(\) overrides[^]*of Orders\.confirm\(\) names <orderId>/);
    });

    it.each(WAYS)('a lazy module is wired and its methods listed, in the provider of %s', async (_way, provider) => {
      class NightJobs extends Jobs {}
      const module = await compile([]);
      await module.init();
      const loaded = await module.get(LazyModuleLoader).load(() => lazy(provider(NightJobs)));
      expect(await loaded.get(Jobs).run('7')).toBe('7 in its lock');
      expect(module.get(LockService).methods()).toEqual([
        { className: 'NightJobs', method: 'run', templates: ['job:<id>'], scope: 'call' },
      ]);
    });
  });
});

describe('a method with a symbol for a name', () => {
  it('a method with a symbol for a name takes the lock of the method that it calls by super', async () => {
    @Injectable()
    class NightJobs extends SymbolJobs {
      override async [SYMBOL](id: string) {
        return super[SYMBOL](id);
      }
    }
    const module = await compile([NightJobs]);
    await module.init();
    expect(await module.get(NightJobs)[SYMBOL]('7')).toBe('7 in its lock');
  });

  it('a method with a symbol for a name does not run without the lock of the method that it hides', async () => {
    @Injectable()
    class NightJobs extends SymbolJobs {
      override async [SYMBOL](id: string) {
        return forget(id);
      }
    }
    const module = await compile([NightJobs]);
    await expect(module.init()).rejects.toThrow(
      /^NightJobs\.Symbol\(run\)\(\) overrides SymbolJobs\.Symbol\(run\)\(\), which has @WithLock/,
    );
  });

  it('a method with a symbol for a name can have its parameters in its key', async () => {
    @Injectable()
    class Named {
      @WithLock('job:<id>')
      async [SYMBOL](id: string, @CurrentLock() lock?: Lock) {
        return `${id} ${lock?.key}`;
      }
    }
    const module = await compile([Named]);
    await module.init();
    expect(await module.get(Named)[SYMBOL]('7')).toBe('7 job:7');
  });
});

describe('a test may put into the place of a locked method', () => {
  it.each<[string, (target: Jobs) => void]>([
    ['a spy of Jest', (target) => void jest.spyOn(target, 'run').mockResolvedValue('spied')],
    ['a mock function of Jest', (target) => (target.run = jest.fn(async () => 'spied'))],
    ['a mock of node:test', (target) => void mock.method(target, 'run', async () => 'spied')],
    ['a fake of Sinon', (target) => (target.run = Object.assign(async () => 'spied', { isSinonProxy: true }))],
  ])('a test may replace a locked method by %s, on the object or on its class', async (_what, put) => {
    class NightJobs extends Jobs {}
    class LateJobs extends Jobs {}
    put(LateJobs.prototype);
    const module = await compile([NightJobs, LateJobs]);
    put(module.get(NightJobs));
    await module.init();
    expect(await module.get(NightJobs).run('7')).toBe('spied');
    expect(await module.get(LateJobs).run('7')).toBe('spied');
  });
});

describe('a fake class of a test may have in the place of a locked method', () => {
  const spied = async () => 'spied';

  it.each<[string, () => Type<Jobs>]>([
    [
      'a field with a mock function of Jest',
      () =>
        class extends Jobs {
          override run = jest.fn(spied);
        },
    ],
    [
      'a field with a mock function of node:test',
      () =>
        class extends Jobs {
          override run = mock.fn(spied);
        },
    ],
    [
      'a field with a fake of Sinon',
      () =>
        class extends Jobs {
          override run = Object.assign(() => Promise.resolve('spied'), { isSinonProxy: true });
        },
    ],
    [
      'a field that its constructor fills',
      () =>
        class extends Jobs {
          override run: Jobs['run'];
          constructor() {
            super();
            this.run = jest.fn(spied);
          }
        },
    ],
  ])('a fake class may have %s', async (_what, make) => {
    for (const provider of [
      { provide: Jobs, useClass: make() },
      { provide: Jobs, useValue: new (make())() },
      { provide: Jobs, useClass: make(), scope: Scope.REQUEST },
    ]) {
      const module = await compile([provider]);
      await module.init();
      expect(await (await module.resolve(Jobs).catch(() => module.get(Jobs))).run('7')).toBe('spied');
    }
  });
});

describe('a global module that wraps the methods of all providers in its onModuleInit', () => {
  type Run = Jobs['run'];

  async function startWith(wrap: (method: Run) => Run): Promise<TestingModule> {
    @Global()
    @Module({ imports: [DiscoveryModule] })
    class Timing implements OnModuleInit {
      constructor(@Inject(DiscoveryService) readonly discovery: DiscoveryService) {}

      onModuleInit() {
        for (const { instance } of this.discovery.getProviders()) {
          if (instance instanceof Jobs) instance.run = wrap(instance.run);
        }
      }
    }
    const imports = [Timing, LockTestingModule.forRoot({ wait: 0 })];
    const module = await Test.createTestingModule({ imports, providers: [Jobs] })
      .setLogger(false as never)
      .compile();
    open.push(module);
    return module.init();
  }

  it('a global module that wraps all methods may come first when it copies their metadata', async () => {
    const module = await startWith(traced);
    expect(await module.get(Jobs).run('7')).toBe('7 in its lock');
  });

  it('a global module that wraps all methods is refused when it does not copy their metadata', async () => {
    const starting = startWith(
      (method) =>
        async function (this: Jobs, ...args) {
          return method.apply(this, args);
        },
    );
    await expect(starting).rejects.toThrow(
      /^The property run of a Jobs hides Jobs\.run\(\)[^]*copy the metadata[^]*Reflect\.getMetadataKeys/,
    );
  });
});
