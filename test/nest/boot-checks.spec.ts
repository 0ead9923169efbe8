import { runInThisContext } from 'node:vm';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import {
  type CanActivate,
  Catch,
  Controller,
  Get,
  Injectable,
  Logger,
  type LoggerService,
  type MiddlewareConsumer,
  type ModuleMetadata,
  type NestMiddleware,
  Next,
  Res,
  Scope,
  SetMetadata,
} from '@nestjs/common';
import { GrpcMethod, GrpcStreamCall, GrpcStreamMethod } from '@nestjs/microservices';
import { Test, type TestingModule } from '@nestjs/testing';
import { WebSocketGateway } from '@nestjs/websockets';
import {
  CurrentLock,
  type Duration,
  getLockServiceToken,
  type Lock,
  LockOptionsError,
  LockService,
  WithLock,
} from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { EMPTY, Observable } from 'rxjs';

const ignore = () => undefined;
const SILENT: LoggerService = { log: ignore, warn: ignore, error: ignore };
const open: TestingModule[] = [];

afterEach(async () => {
  Logger.overrideLogger(false);
  for (const module of open.splice(0)) await module.close();
});

async function start(
  { imports = [], ...metadata }: ModuleMetadata,
  logger: LoggerService = SILENT,
): Promise<TestingModule> {
  const building = Test.createTestingModule({ imports: [LockTestingModule.forRoot(), ...imports], ...metadata });
  const module = await building.setLogger(logger).compile();
  open.push(module);
  return module.init();
}

@Injectable()
class Jobs {
  @WithLock('job:<id>')
  async run(id: string) {
    return id;
  }
}

/** A decorator that forgets the metadata of what it wraps, as many do. */
const Forgetful: MethodDecorator = (_prototype, _name, descriptor) => {
  const method = descriptor.value as (...args: unknown[]) => unknown;
  descriptor.value = function (this: unknown, ...args: unknown[]) {
    return method.apply(this, args);
  } as typeof descriptor.value;
};

/** A decorator that puts an async function around what it wraps, as `@SentryTraced` does. */
const Traced: MethodDecorator = (_prototype, _name, descriptor) => {
  const method = descriptor.value as (...args: unknown[]) => unknown;
  descriptor.value = async function (this: unknown, ...args: unknown[]) {
    return method.apply(this, args);
  } as typeof descriptor.value;
};

/** As `@Transactional` of MikroORM, which looks at the constructor of what it wraps, at its place on the disk. */
const mikroOrmTransactional = (file: string) =>
  runInThisContext(
    `(_prototype, _name, descriptor) => {
      const method = descriptor.value;
      if (method.constructor.name !== 'AsyncFunction') throw new Error('not async');
      descriptor.value = async function (...args) { return method.apply(this, args); };
    }`,
    { filename: `/app/node_modules/@mikro-orm/${file}` },
  ) as MethodDecorator;

/** What each mistake is told as: when the class is defined, or when the app starts. */
const MISTAKES: [mistake: string, make: () => ModuleMetadata | void, message: string][] = [
  [
    'a name that the method has not',
    () => {
      class Orders {
        @WithLock('order:<orderId>')
        async confirm(id: string) {
          return id;
        }
      }
      return { providers: [Orders] };
    },
    `The lock key "order:<orderId>" of Orders.confirm() names <orderId>. Known names: id.

Potential solutions:
- Name one of them.
- Name a position, such as <0> or <0.id>.
- Give a function of the arguments.`,
  ],
  [
    'a part that a request has not',
    () => {
      class Orders {
        @WithLock('order:<id>', { scope: 'request' })
        async confirm(id: string) {
          return id;
        }
      }
      return { controllers: [Orders] };
    },
    `The lock key "order:<id>" of Orders.confirm() names <id>. Known names: params, query, body, headers.

Potential solutions:
- Name a part of one of them, such as <params.id>.
- Give a function of the ExecutionContext.`,
  ],
  [
    'a position in a request, and what is no placeholder',
    () => {
      class Orders {
        @WithLock(['order:<0.id>', 'order:<params id>'], { scope: 'request' })
        async confirm(id: string) {
          return id;
        }
      }
      return { controllers: [Orders] };
    },
    `The lock key "order:<0.id>" of Orders.confirm() names <0.id>. Known names: params, query, body, headers.

Potential solutions:
- Name a part of one of them, such as <params.id>.
- Give a function of the ExecutionContext.

The lock key "order:<params id>" of Orders.confirm() has the placeholder <params id>.

Potential solutions:
- Write it as one of these: <params.id>, <query.id>, <body.account.id>, <headers.x-id>.
- For anything else, give a function.`,
  ],
  [
    'a static method',
    () => {
      class Orders {
        @WithLock('order')
        static async confirm() {}
      }
      return { providers: [Orders] };
    },
    '@WithLock stands on static Orders.confirm(). Nest injects nothing into a class itself: ' +
      'make it a method of an injectable, or use LockService.',
  ],
  [
    'a method that returns nothing',
    () => {
      class Orders {
        // @ts-expect-error the compiler refuses it too
        @WithLock('order')
        confirm() {}
      }
      return { providers: [Orders] };
    },
    `Orders.confirm() does not return a promise, an Observable or an async iterator, so @WithLock can't tell when its work ends.

Potential solutions:
- Make it async.
- If it starts work that goes on, return a promise of its end.`,
  ],
  [
    'an override that has lost its decorator',
    () => {
      @Injectable()
      class NightJobs extends Jobs {
        override async run(id: string) {
          return `${id} by night`;
        }
      }
      return { providers: [NightJobs] };
    },
    `NightJobs.run() overrides Jobs.run(), which has @WithLock, and would run without the lock.

Potential solutions:
- Put @WithLock on NightJobs.run() too.
- Call super.run() in it.
- If it needs no lock, give it another name.`,
  ],
  [
    'such an override between two classes, in a request-scoped provider',
    () => {
      class NightJobs extends Jobs {
        override async run(id: string) {
          return `${id} by night`;
        }
      }
      @Injectable({ scope: Scope.REQUEST })
      class LateJobs extends NightJobs {
        override async run(id: string) {
          return super.run(id);
        }
      }
      return { providers: [LateJobs] };
    },
    `NightJobs.run() overrides Jobs.run(), which has @WithLock, and would run without the lock.

Potential solutions:
- Put @WithLock on NightJobs.run() too.
- Call super.run() in it.
- If it needs no lock, give it another name.`,
  ],
  [
    "an override that has lost its decorator with scope: 'request', which no super would bring back",
    () => {
      @Controller('orders')
      class Orders {
        @Get()
        @WithLock('order', { scope: 'request' })
        async all(): Promise<string[]> {
          return [];
        }
      }
      @Controller('late-orders')
      class LateOrders extends Orders {
        @Get()
        override async all() {
          return ['late'];
        }
      }
      return { controllers: [LateOrders] };
    },
    `LateOrders.all() overrides Orders.all(), which has @WithLock, and would run without the lock.

Potential solutions:
- Put @WithLock on LateOrders.all() too.
- If it needs no lock, give it another name.`,
  ],
  [
    'a wrapper of an inherited method without its metadata, as Sentry puts on the class of a BullMQ processor',
    () => {
      class NightJobs extends Jobs {}
      class WrittenJobs extends Jobs {
        override async run(id: string) {
          return super.run(id);
        }
      }
      class LockedJobs extends Jobs {
        @WithLock('night-job:<id>')
        override async run(id: string) {
          return id;
        }
      }
      const types = [NightJobs, WrittenJobs, LockedJobs];
      for (const { prototype } of types) {
        // eslint-disable-next-line @typescript-eslint/unbound-method
        const { run } = prototype;
        prototype.run = async function (...args) {
          return run.apply(this, args);
        };
      }
      return { providers: types };
    },
    `The value at NightJobs.run() hides Jobs.run(), which has @WithLock, and nothing shows that it takes the lock.

Potential solutions:
- If it wraps that method, copy the metadata to the wrapper: all keys that Reflect.getMetadataKeys() lists.
- Write it as a method of the class, with @WithLock or with a super call of the method that it overrides. A tool may wrap that one without its metadata, as Sentry does with process() of BullMQ.
- In a test, use a mock function of Jest, Vitest, Sinon or node:test.`,
  ],
  ...[false, true].map((hasItsOwn): [string, () => object, string] => [
    `an override of a handler with scope: 'request' that calls it by super, ${hasItsOwn ? 'locked' : 'not locked'}`,
    () => {
      @Controller('orders')
      class Orders {
        @Get()
        @WithLock('order', { scope: 'request' })
        async all() {
          return [];
        }
      }
      @Controller('late-orders')
      class LateOrders extends Orders {
        @Get()
        @(hasItsOwn ? WithLock('order', { scope: 'request' }) : SetMetadata('late', true))
        override async all() {
          return super.all();
        }
      }
      return { controllers: [LateOrders] };
    },
    `LateOrders.all() calls Orders.all() by super. The lock of Orders.all() has scope: 'request', which is taken only for the handler that the decorator stands on, so every call would be refused.

Potential solutions:
- Put @WithLock with scope: 'request' on LateOrders.all(), and let both call a method without a lock.`,
  ]),
  [
    'two modules of one name',
    () => ({ imports: [LockTestingModule.forRoot()] }),
    `Two RedisLockModules are named "default".

Potential solutions:
- Import forRoot() once, in the root module: it is global.
- Give one of them a name: RedisLockModule.forRoot({ name: "billing" }).`,
  ],
  [
    'a frozen object',
    () => ({ providers: [{ provide: Jobs, useValue: Object.freeze(new Jobs()) }] }),
    `The Jobs given to Nest is frozen, so it can't be given the LockService that its @WithLock methods need.

Potential solutions:
- Let Nest build it.
- Don't freeze it.`,
  ],
  [
    'an object that its constructor freezes',
    () => {
      @Injectable()
      class FrozenJobs extends Jobs {
        constructor() {
          super();
          Object.freeze(this);
        }
      }
      return { providers: [FrozenJobs] };
    },
    `The constructor of FrozenJobs freezes the object, so it can't be given the LockService that its @WithLock methods need.

Potential solutions:
- Don't freeze it, or do so in onModuleInit().`,
  ],
  [
    '@CurrentLock() on a method without @WithLock, inherited or in an override that calls super',
    () => {
      class Base {
        async walk(@CurrentLock() lock?: Lock) {
          return lock;
        }
      }
      @Injectable()
      class Walks extends Base {}
      @Injectable()
      class NightJobs extends Jobs {
        override async run(id: string, @CurrentLock() lock?: Lock) {
          return `${await super.run(id)} ${lock?.key}`;
        }
      }
      return { providers: [Walks, NightJobs] };
    },
    `Base.walk() has a parameter with @CurrentLock(), but no @WithLock, so it would get no lock.

Potential solutions:
- Put @WithLock on Base.walk().
- For the lock that a caller holds, inject LockService and call current().

NightJobs.run() has a parameter with @CurrentLock(), but no @WithLock, so it would get no lock.

Potential solutions:
- Put @WithLock on NightJobs.run().
- For the lock that a caller holds, inject LockService and call current().`,
  ],
  [
    "scope: 'request' on a method that answers no request",
    () => {
      @Injectable()
      class Orders {
        @WithLock('order:<params.id>', { scope: 'request' })
        async confirm() {}
      }
      return { providers: [Orders] };
    },
    `Orders.confirm() has a lock with scope: 'request', but is not an HTTP handler, so every call would be refused.

Potential solutions:
- Leave out the scope: the lock is then held for each call.
- Put it on the method that has @Get(), @Post() or the like.`,
  ],
  [
    "onTimeout: 'skip' on a handler that sends its response itself",
    () => {
      @Controller('files')
      class Files {
        @Get('call')
        @WithLock('file', { onTimeout: 'skip' })
        async call(@Res() _response: unknown) {}

        @Get('request')
        @WithLock('file', { scope: 'request', onTimeout: 'skip' })
        request(@Next() _next: unknown) {}

        @Get('passthrough')
        @WithLock('file', { onTimeout: 'skip' })
        async passthrough(@Res({ passthrough: true }) _response: unknown) {}

        @Get('answered')
        @WithLock('file', { onTimeout: () => undefined })
        async answered(@Res() _response: unknown) {}
      }
      return { controllers: [Files] };
    },
    ['call', 'request']
      .map(
        (method) =>
          `Files.${method}() has onTimeout: 'skip' and sends its response by @Res() or @Next(), so nobody would answer a request that is skipped.

Potential solutions:
- Write @Res({ passthrough: true }), and return what is to be sent.
- Give onTimeout a function that sends a response.
- Leave out onTimeout: the client gets a 409.`,
      )
      .join('\n\n'),
  ],
  ...(
    [
      ['core', 'decorators'],
      ['decorators', 'legacy'],
    ] as const
  ).map(([name, folder]): [string, () => object, string] => [
    `@Transactional of @mikro-orm/${name} above @WithLock, also above what another decorator has put around it; and not another decorator from there`,
    () => {
      class Orders {
        @mikroOrmTransactional(`${name}/${folder}/Transactional.js`)
        @WithLock('order')
        async confirm() {}

        @WithLock('order')
        @mikroOrmTransactional(`${name}/${folder}/Transactional.js`)
        async cancel() {}

        @mikroOrmTransactional(`${name}/${folder}/Transactional.js`)
        @Traced
        @WithLock('order')
        async ship() {}

        @mikroOrmTransactional(`${name}/${folder}/CreateRequestContext.js`)
        @WithLock('order')
        async list() {}
      }
      return { providers: [Orders] };
    },
    ['confirm', 'ship']
      .map(
        (method) =>
          `Orders.${method}() has @Transactional (of @mikro-orm/${name}) above @WithLock, so its transaction would commit after the lock is released.

Potential solutions:
- Write @WithLock above @Transactional: the lock is then held until the transaction has ended.`,
      )
      .join('\n\n'),
  ]),
  [
    '@Transactional above @WithLock, where a tool shortens the stacks of the process',
    () => {
      const { prepareStackTrace } = Error as { readonly prepareStackTrace?: unknown };
      Error.prepareStackTrace = ({ message }) => message;
      try {
        class Orders {
          @mikroOrmTransactional('core/decorators/Transactional.js')
          @WithLock('order')
          async confirm() {}
        }
        return { providers: [Orders] };
      } finally {
        Object.assign(Error, { prepareStackTrace });
      }
    },
    `Orders.confirm() has @Transactional (of @mikro-orm/core) above @WithLock, so its transaction would commit after the lock is released.

Potential solutions:
- Write @WithLock above @Transactional: the lock is then held until the transaction has ended.`,
  ],
  [
    "a decorator that drops the interceptor of scope: 'request'",
    () => {
      @Controller('orders')
      class Orders {
        @Get()
        @Forgetful
        @WithLock('order:<params.id>', { scope: 'request' })
        async confirm() {}
      }
      return { controllers: [Orders] };
    },
    `Orders.confirm() has a lock with scope: 'request', but a decorator above has dropped its metadata, so every call would be refused.

Potential solutions:
- Write @WithLock above that decorator.`,
  ],
  [
    'a locked method that was copied from another class, inherited ones included',
    () => {
      const run = Object.getOwnPropertyDescriptor(Jobs.prototype, 'run')!;
      class Mixed {}
      Object.defineProperty(Mixed.prototype, 'run', run);
      class Derived extends Mixed {}
      class Bound {}
      Object.assign(Bound.prototype, { run: Jobs.prototype.run.bind(new Jobs()) });
      class Locked extends Jobs {}
      Object.defineProperty(Locked.prototype, 'walk', run);
      return { providers: [Derived, Bound, Locked] };
    },
    `Mixed.run() was copied from another class with its @WithLock, but Nest gives a Derived no LockService, so every call would be refused.

Potential solutions:
- Let Derived extend that class, or call it.
- Write the method in Mixed, with @WithLock.`,
  ],
  [
    'a lock on hooks of a gateway, inherited ones included, and none on those of other classes',
    () => {
      class Base {
        @WithLock('room')
        async handleConnection() {}
      }
      @WebSocketGateway()
      class Rooms extends Base {
        @WithLock('room')
        async handleDisconnect() {}

        async afterInit() {}
      }
      @WebSocketGateway()
      class CarefulRooms extends Base {
        override async handleConnection() {
          await super.handleConnection().catch(() => undefined);
        }
      }
      return { providers: [Base, Rooms, CarefulRooms] };
    },
    ['handleConnection', 'handleDisconnect']
      .map(
        (
          hook,
        ) => `Rooms.${hook}() is a hook of a gateway, whose errors Nest does not catch, so a lock that can't be acquired would end the process.

Potential solutions:
- Put @WithLock on another method, and call it from this one inside try/catch.`,
      )
      .join('\n\n'),
  ],
  [
    'a lock on the method of an exception filter',
    () => {
      @Catch()
      class Audit {
        @WithLock('audit')
        async catch() {}

        @WithLock('audit')
        async write() {}
      }
      @Catch()
      class RpcAudit {
        @WithLock('audit')
        catch(): Observable<unknown> {
          return EMPTY;
        }
      }
      return { providers: [Audit, RpcAudit] };
    },
    `Audit.catch() is the method of an exception filter, whose errors Nest does not catch, so a lock that can't be acquired would end the process.

Potential solutions:
- Put @WithLock on another method, and call it from this one inside try/catch.`,
  ],
  [
    'a lock on a handler with @GrpcStreamCall, and none on other handlers of gRPC',
    () => {
      @Controller()
      class Uploads {
        @GrpcStreamCall('Uploads')
        @WithLock('upload')
        async up() {}

        @GrpcMethod('Uploads')
        @WithLock('upload')
        async one() {}

        @GrpcStreamMethod('Uploads')
        @WithLock('upload')
        async many() {}
      }
      return { controllers: [Uploads] };
    },
    `Uploads.up() is a handler with @GrpcStreamCall, whose errors Nest does not catch, so a lock that can't be acquired would end the process.

Potential solutions:
- Put @WithLock on another method, and call it from this one inside try/catch.`,
  ],
  [
    'a template that is not closed',
    () => {
      class Orders {
        @WithLock('order:<id')
        async confirm(id: string) {
          return id;
        }
      }
      return { providers: [Orders] };
    },
    `The lock key "order:<id" of Orders.confirm() has a "<" or ">" without its partner.

Potential solutions:
- Write each placeholder as <name>.
- If the key itself has such a character, give a function.`,
  ],
  [
    'a template of JavaScript in plain quotes',
    () => {
      class Orders {
        @WithLock('order:${id}')
        async confirm(id: string) {
          return id;
        }
      }
      return { providers: [Orders] };
    },
    `The lock key "order:\${id}" of Orders.confirm() has "\${id}", which no value replaces.

Potential solutions:
- Write <id>.
- For anything else, give a function.`,
  ],
  [
    'an option that there is not',
    () => {
      class Orders {
        @WithLock('order', { retries: 3 } as object)
        async confirm() {}
      }
      return { providers: [Orders] };
    },
    '@WithLock on Orders.confirm(): There is no option "retries". Known options: ' +
      'wait, lease, watchdog, maxHold, warnAfter, atLeast, mode, permits, label, maxWaiters, fair, reentrant, signal, onLost, ' +
      'module, onTimeout, scope.',
  ],
  [
    'all mistakes of all methods, in one list',
    () => {
      class Orders {
        @WithLock(['order:<orderId>:<lineId>', 'customer:<customer>'], { wait: 'soon' as Duration })
        async confirm(id: string) {
          return id;
        }
      }
      @Controller()
      class Bills {
        @WithLock('bill:<billId>')
        async pay(_id: string, _sum: number) {}
      }
      return { providers: [Orders, { provide: 'again', useClass: Orders }], controllers: [Bills] };
    },
    `@WithLock on Orders.confirm(): "wait" is "soon", but must be a duration of at least 0 ms: a number of milliseconds or a string such as "250ms", "30s", "2m", or Infinity.

The lock key "order:<orderId>:<lineId>" of Orders.confirm() names <orderId> and <lineId>. Known names: id.

Potential solutions:
- Name one of them.
- Name a position, such as <0> or <0.id>.
- Give a function of the arguments.

The lock key "customer:<customer>" of Orders.confirm() names <customer>. Known names: id.

Potential solutions:
- Name one of them.
- Name a position, such as <0> or <0.id>.
- Give a function of the arguments.

The lock key "bill:<billId>" of Bills.pay() names <billId>. Known names: _id, _sum.

Potential solutions:
- Name one of them.
- Name a position, such as <0> or <0.id>.
- Give a function of the arguments.`,
  ],
  [
    'mistakes of several kinds, in one list',
    () => {
      @Injectable()
      class NightJobs extends Jobs {
        override async run(id: string) {
          return `${id} by night`;
        }
      }
      return { imports: [LockTestingModule.forRoot()], providers: [NightJobs] };
    },
    `Two RedisLockModules are named "default".

Potential solutions:
- Import forRoot() once, in the root module: it is global.
- Give one of them a name: RedisLockModule.forRoot({ name: "billing" }).

NightJobs.run() overrides Jobs.run(), which has @WithLock, and would run without the lock.

Potential solutions:
- Put @WithLock on NightJobs.run() too.
- Call super.run() in it.
- If it needs no lock, give it another name.`,
  ],
];

describe('boot checks', () => {
  it.each(MISTAKES)('an app does not start with %s', async (_mistake, make, message) => {
    const booting = (async () => start(make() ?? {}))();
    await expect(booting).rejects.toBeInstanceOf(LockOptionsError);
    await expect(booting).rejects.toMatchObject({ message });
  });
});

describe('boot checks that pass', () => {
  it.each<[string, () => ModuleMetadata]>([
    [
      'an override that calls super somewhere',
      () => {
        @Injectable()
        class NightJobs extends Jobs {
          override async run(id: string) {
            return Promise.all([1].map(() => super.run(id))).then(([one]) => one!);
          }
        }
        return { providers: [NightJobs] };
      },
    ],
    [
      'an override of a method that only says what is wrong with its lock',
      () => {
        abstract class Payments {
          @WithLock('pay:<amount>')
          async pay(id: string) {
            return id;
          }
        }
        @Injectable()
        class CardPayments extends Payments {
          @WithLock('pay:<id>')
          override async pay(id: string) {
            return id;
          }
        }
        return { providers: [CardPayments] };
      },
    ],
    [
      'a frozen object that has what it needs',
      () => {
        @Injectable()
        class FrozenJobs extends Jobs {}
        return {
          providers: [
            FrozenJobs,
            { provide: 'alias', inject: [FrozenJobs], useFactory: (jobs: FrozenJobs) => Object.freeze(jobs) },
          ],
        };
      },
    ],
    [
      'a spy in the place of a locked method',
      () => {
        class NightJobs extends Jobs {}
        jest.spyOn(NightJobs.prototype, 'run').mockResolvedValue('spied');
        return { providers: [NightJobs] };
      },
    ],
  ])('an app starts with %s', async (_what, make) => {
    await expect(start(make())).resolves.toBeDefined();
  });
});

/** Hears what is logged while an app starts. */
async function logged(metadata: ModuleMetadata): Promise<Record<'debug' | 'warn', string[]>> {
  const lines: Record<'debug' | 'warn', string[]> = { debug: [], warn: [] };
  await start(metadata, {
    ...SILENT,
    debug: (line: string) => lines.debug.push(line),
    warn: (line: string) => lines.warn.push(line),
  });
  return lines;
}

@Injectable()
class Billing {
  @WithLock(['from:<from>', 'to:<to>'], { module: 'billing' })
  async move(from: string, to: string) {
    return [from, to];
  }

  @WithLock((id: string) => `bill:${id}`)
  async bill(id: string) {
    return id;
  }
}

@Injectable({ scope: Scope.REQUEST })
class NightJobs extends Jobs {}

const BOTH: ModuleMetadata = {
  imports: [LockTestingModule.forRoot({ name: 'billing' })],
  providers: [Billing, NightJobs, Jobs],
};

describe('the log at boot', () => {
  it('an app that starts logs each locked method once, at the level debug', async () => {
    const { debug } = await logged(BOTH);
    expect(debug.sort()).toEqual([
      'Billing.bill() locks the key that its function returns',
      'Billing.move() locks "from:<from>" and "to:<to>" of the module "billing"',
      'Jobs.run() locks "job:<id>"',
      'NightJobs.run() locks "job:<id>"',
    ]);
  });

  it('an app that starts logs the locked methods of each module', async () => {
    const module = await start(BOTH);
    const methods = (locks: LockService) => [...locks.methods()].sort((a, b) => a.className.localeCompare(b.className));
    expect(methods(module.get(LockService))).toEqual([
      { className: 'Billing', method: 'bill', templates: undefined, scope: 'call' },
      { className: 'Jobs', method: 'run', templates: ['job:<id>'], scope: 'call' },
      { className: 'NightJobs', method: 'run', templates: ['job:<id>'], scope: 'call' },
    ]);
    expect(methods(module.get<LockService>(getLockServiceToken('billing')))).toEqual([
      { className: 'Billing', method: 'move', templates: ['from:<from>', 'to:<to>'], scope: 'call' },
    ]);
  });

  it("an app that starts warns of a class with locked methods that Nest does not know and can't wire", async () => {
    class Forgotten {
      @WithLock('job')
      async run() {}

      @WithLock('job')
      async walk() {}
    }
    const { warn } = await logged({ providers: [Jobs] });
    expect(warn).toEqual([
      expect.stringContaining(`Nest knows no object of the class ${Forgotten.name} yet, and Forgotten.run(), Forgotten.walk() can take a lock only on objects that Nest builds or is given. Calls on others will be refused with LockNotWiredError.

Potential solutions:
- Make Forgotten a provider, and let Nest build it.
- If the app calls "new Forgotten()" itself, use LockService.withLock() instead of the decorator.
- If Forgotten is only the base of other classes, or Nest makes or gets its objects later, all is well: @Injectable() on it ends this warning.`),
    ]);
  });

  it('an app that starts does not warn of a class that others extend, nor of one that @Injectable() says is meant for Nest', async () => {
    abstract class BaseJob {
      @WithLock('job')
      async run() {}
    }
    @Injectable()
    class ImportJob extends BaseJob {
      @WithLock('import')
      override async run() {}
    }
    @Injectable()
    abstract class OtherBase {
      @WithLock('job')
      async run() {}
    }
    const warnings = (await logged({ providers: [Jobs] })).warn.join();
    for (const { name } of [BaseJob, ImportJob, OtherBase]) expect(warnings).not.toContain(name);
  });

  it('an app that starts warns of what is wrong with a class that is not part of it yet', async () => {
    @Injectable()
    class Later {
      @WithLock('job:<id>')
      async walk(jobId: string) {
        return jobId;
      }
    }
    const { warn } = await logged({ providers: [Jobs] });
    expect(warn).toEqual([
      expect.stringContaining(`The lock key "job:<id>" of ${Later.name}.walk() names <id>. Known names: jobId`),
    ]);
  });

  it('an app that starts does not warn of a class that another app of the process knows', async () => {
    class Elsewhere {
      @WithLock('job')
      async run() {}
    }
    expect(
      (await logged({ providers: [{ provide: 'elsewhere', useFactory: () => new Elsewhere() }] })).warn.join(),
    ).not.toContain('Elsewhere');
    expect((await logged({})).warn.join()).not.toContain('Elsewhere');
  });

  it('an app does not start with a mistake in a middleware', async () => {
    @Injectable()
    class Turnstile implements NestMiddleware {
      @WithLock('gate:<gateId>')
      async use(_request: unknown, _response: unknown, next: () => void) {
        next();
      }
    }
    class Gates {
      configure(consumer: MiddlewareConsumer) {
        consumer.apply(Turnstile).forRoutes('gates');
      }
    }
    const module = await Test.createTestingModule({ imports: [LockTestingModule.forRoot(), Gates] }).compile();
    const app = module.createNestApplication({ logger: false });
    await expect(app.init()).rejects.toThrow(/of Turnstile\.use\(\) names <gateId>/);
    await app.close();
  });

  it('an app that starts wires guards that were made with new', async () => {
    class Guard implements CanActivate {
      @WithLock('guard')
      async canActivate() {
        return true;
      }
    }
    const guard = new Guard();
    const module = await Test.createTestingModule({ imports: [LockTestingModule.forRoot()] }).compile();
    const app = module.createNestApplication({ logger: false }).useGlobalGuards(guard);
    open.push(app as unknown as TestingModule);
    await app.init();
    expect(await guard.canActivate()).toBe(true);
  });
});
