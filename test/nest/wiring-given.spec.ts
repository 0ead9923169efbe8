import { afterEach, describe, expect, it } from '@jest/globals';
import {
  Body,
  type CallHandler,
  type CanActivate,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  Get,
  type INestApplication,
  Inject,
  Injectable,
  type ModuleMetadata,
  type NestInterceptor,
  Param,
  type PipeTransform,
  type Provider,
  Post,
  Scope,
  UseFilters,
  UseGuards,
  UseInterceptors,
  type Type,
  UsePipes,
} from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { CurrentLock, type Lock, LockNotWiredError, LockOptionsError, LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import type { Response } from 'express';
import { objectsIn } from '../../lib/boot/objects-in.js';
import { startApp } from './http-app.js';

const imports = [LockTestingModule.forRoot({ wait: 0 })];
let app: INestApplication | undefined;

afterEach(async () => {
  await app?.close();
  app = undefined;
  ran.length = 0;
});

async function start(metadata: ModuleMetadata, prepare?: (app: INestApplication) => void): Promise<INestApplication> {
  return (app = await startApp(() => new ExpressAdapter(), { imports, ...metadata }, prepare));
}

/** Which bodies ran while the lock was held. */
const ran: string[] = [];

class Locked {
  constructor(readonly name = 'it') {}

  @WithLock('room')
  async enter(@CurrentLock() lock?: Lock) {
    if (lock?.isHeld) ran.push(this.name);
    return lock?.key;
  }
}

class Guard extends Locked implements CanActivate {
  async canActivate() {
    return (await this.enter()) === 'room';
  }
}

class Interceptor extends Locked implements NestInterceptor {
  async intercept(_context: ExecutionContext, next: CallHandler) {
    await this.enter();
    return next.handle();
  }
}

class Pipe extends Locked implements PipeTransform {
  async transform(value: unknown) {
    await this.enter();
    return value;
  }
}

@Catch()
class Filter extends Locked implements ExceptionFilter {
  async catch(_error: unknown, host: ExecutionContext) {
    const response = host.switchToHttp().getResponse<Response>();
    await this.enter().catch((error: unknown) => ran.push(String(error)));
    response.send('filtered');
  }
}

/** As a client of Prisma and each extension of one, which show the methods of the class as properties without a value. */
const asPlainObject = <T extends object>(object: T): T =>
  new Proxy(object, {
    getPrototypeOf: () => Object.prototype,
    getOwnPropertyDescriptor: (target, name) =>
      typeof name === 'string' && Reflect.has(Object.getPrototypeOf(target) as object, name)
        ? { enumerable: true, configurable: true, writable: true }
        : Reflect.getOwnPropertyDescriptor(target, name),
  });

/** A decorator that forgets the metadata of what it wraps. */
const Forgetful: MethodDecorator = (_prototype, _name, descriptor) => {
  const method = descriptor.value as (...args: unknown[]) => unknown;
  descriptor.value = function (this: unknown, ...args: unknown[]) {
    return method.apply(this, args);
  } as typeof descriptor.value;
};

class Client extends Locked {
  constructor() {
    super();
    return asPlainObject(this);
  }

  @Forgetful
  @WithLock('room')
  override async enter(@CurrentLock() lock?: Lock) {
    return lock?.key;
  }

  @WithLock('room')
  async leave(@CurrentLock() lock?: Lock) {
    return lock?.key;
  }
}

@Injectable()
class LockedGuard implements CanActivate {
  @WithLock('guard')
  async canActivate(_context: ExecutionContext, @CurrentLock() lock?: Lock) {
    ran.push(lock!.key);
    return true;
  }
}

async function get(path = 'rooms', method = 'GET'): Promise<string> {
  const response = await fetch(`${await app!.getUrl()}/${path}`, { method });
  return `${response.status} ${await response.text()}`;
}

describe('what was made with new takes its lock', () => {
  it('an object made with new takes its lock as guard, interceptor, pipe or filter of class and method', async () => {
    @Controller('rooms')
    @UseGuards(new Guard('guard of the class'))
    @UseInterceptors(new Interceptor('interceptor of the class'))
    @UsePipes(new Pipe('pipe of the class'))
    @UseFilters(new Filter('filter of the class'))
    class Rooms {
      @Get()
      @UseGuards(new Guard('guard'))
      @UseInterceptors(new Interceptor('interceptor'))
      @UsePipes(new Pipe('pipe'))
      room(@Body() _body: unknown) {
        throw new Error();
      }

      @Post()
      @UseFilters(new Filter('filter'))
      fails() {
        throw new Error();
      }
    }
    await start({ controllers: [Rooms] });
    expect(await get()).toContain('filtered');
    expect(ran).toEqual([
      'guard of the class',
      'guard',
      'interceptor of the class',
      'interceptor',
      'pipe of the class',
      'pipe',
      'filter of the class',
    ]);
    ran.length = 0;
    expect(await get('rooms', 'POST')).toContain('filtered');
    expect(ran).toEqual(['guard of the class', 'interceptor of the class', 'filter']);
  });

  it('an object made with new takes its lock for a parameter, and on an inherited handler', async () => {
    abstract class Base {
      @Get(':id')
      @UseGuards(new Guard('inherited'))
      room(@Param('id', new Pipe('parameter')) id: string) {
        return id;
      }
    }
    @Controller('rooms')
    class Rooms extends Base {}
    await start({ controllers: [Rooms] });
    expect(await get('rooms/7')).toBe('200 7');
    expect(ran).toEqual(['inherited', 'parameter']);
  });

  it('an object made with new takes its lock for useGlobalGuards and its like', async () => {
    @Controller('rooms')
    class Rooms {
      @Get()
      room() {
        return 'room';
      }
    }
    await start({ controllers: [Rooms] }, (app) =>
      app.useGlobalGuards(new Guard('guard')).useGlobalInterceptors(new Interceptor('interceptor')),
    );
    expect(await get()).toBe('200 room');
    expect(ran).toEqual(['guard', 'interceptor']);
  });

  it('an object made with new takes its lock for useFactory of APP_GUARD, of a request too', async () => {
    @Controller('rooms')
    class Rooms {
      @Get()
      room() {
        return 'room';
      }
    }
    const providers = [Scope.DEFAULT, Scope.REQUEST].map((scope) => ({
      provide: APP_GUARD,
      scope,
      useFactory: () => new Guard(`${scope}`),
    }));
    await start({ controllers: [Rooms], providers });
    expect(await get()).toBe('200 room');
    expect(ran.sort()).toEqual([`${Scope.DEFAULT}`, `${Scope.REQUEST}`]);
  });

  it('an object made with new is not wired where it calls another object that was made with new', async () => {
    class Inner extends Guard {
      readonly inner = new Locked('inner');

      override async canActivate() {
        return (await this.inner.enter().catch((error: unknown) => error instanceof LockNotWiredError)) === true;
      }
    }
    @Controller('rooms')
    class Rooms {
      @Get()
      @UseGuards(new Inner())
      room() {
        return 'room';
      }
    }
    await start({ controllers: [Rooms] });
    expect(await get()).toBe('200 room');
    expect(ran).toEqual([]);
  });
});

it('a guard that Nest builds can be locked itself', async () => {
  @Controller('rooms')
  class Rooms {
    @Get()
    @UseGuards(LockedGuard)
    room() {
      return 'room';
    }
  }
  await start({ controllers: [Rooms] });
  expect(await get()).toBe('200 room');
  expect(ran).toEqual(['guard']);
});

const FACTORIES = [
  ['a plain factory', () => new Locked()],
  ['an async factory', async () => new Locked()],
] as const;

describe.each(FACTORIES)('what %s makes takes its lock', (_what, useFactory) => {
  @Injectable()
  class Holder {
    constructor(@Inject('made') readonly made: Locked) {}
  }

  it.each([
    ['of requests', Scope.REQUEST],
    ['that is transient', Scope.TRANSIENT],
  ] as const)('an object that a factory makes takes its lock in a scope %s', async (_scope, scope) => {
    const app = await start({ providers: [{ provide: 'made', scope, useFactory }, Holder] });
    const [one, two, { made }] = [
      await app.resolve<Locked>('made'),
      await app.resolve<Locked>('made'),
      await app.resolve(Holder),
    ];
    expect(one).not.toBe(two);
    expect([await one.enter(), await two.enter(), await made.enter()]).toEqual(['room', 'room', 'room']);
    await using held = await app.get(LockService).lock('room');
    await expect(one.enter()).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    await expect(made.enter()).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    held.assertHeld();
  });

  it('an object that a factory makes takes its lock where the factory injects something of the request', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class OfRequest {}
    const app = await start({
      providers: [
        OfRequest,
        { provide: 'made', useFactory, inject: [OfRequest] },
        { provide: 'alias', useExisting: 'made' },
      ],
    });
    expect(await (await app.resolve<Locked>('made')).enter()).toBe('room');
    expect(await (await app.resolve<Locked>('alias')).enter()).toBe('room');
  });

  it('an object that a factory makes takes its lock in another module that exports it', async () => {
    class Exporting {}
    const exporting = {
      module: Exporting,
      providers: [{ provide: 'made', scope: Scope.REQUEST, useFactory }],
      exports: ['made'],
    };
    const app = await start({ imports: [...imports, exporting], providers: [Holder] });
    expect(await (await app.resolve(Holder)).made.enter()).toBe('room');
  });

  it('an object that a factory makes takes its lock in a static object that holds a transient one', async () => {
    const app = await start({ providers: [{ provide: 'made', scope: Scope.TRANSIENT, useFactory }, Holder] });
    expect(await app.get(Holder).made.enter()).toBe('room');
  });
});

it('an object that a factory makes for a request is checked then: the request fails without the lock', async () => {
  class Forgetful extends Locked {
    override async enter() {
      ran.push('without the lock');
      return undefined;
    }
  }
  const scope = Scope.REQUEST;
  const providers = [
    { provide: 'made', scope, useFactory: () => new Forgetful() },
    { provide: 'frozen', scope, useFactory: () => Object.freeze(new Locked()) },
    { provide: 'number', scope, useFactory: () => 7 },
  ];
  const app = await start({ providers });
  for (let attempt = 0; attempt < 2; attempt++) {
    const made = app.resolve<Locked>('made');
    await expect(made).rejects.toBeInstanceOf(LockOptionsError);
    await expect(made).rejects.toThrow(/^Forgetful\.enter\(\) overrides Locked\.enter\(\), which has @WithLock/);
    await expect(app.resolve('frozen')).rejects.toThrow(/^The Locked given to Nest is frozen/);
    expect(await app.resolve('number')).toBe(7);
  }
});

it.each<[string, () => unknown]>([
  ['of texts', () => ['a', 'b']],
  ['of numbers', () => [1, 2]],
  ['of billions of holes', () => new Array(2 ** 32 - 1)],
])('an app starts with an array %s', async (_what, make) => {
  const app = await start({ providers: [{ provide: 'list', useValue: make() }] });
  expect(Array.isArray(app.get('list'))).toBe(true);
});

describe('objects in an array take their locks', () => {
  it('of the rows in an array, one of each class is looked at, and all of a class with locks', () => {
    class Row {}
    class LockedRow extends Locked {}
    const inner = new LockedRow();
    const withoutPrototype = () => Object.create(null) as object;
    const tables = [
      [new Row(), new Row(), new Date(0), new Row()],
      [new LockedRow(), new LockedRow()],
      [{ id: 1 }, withoutPrototype(), withoutPrototype()],
      [1, 'text', null],
      [[inner], [new Row()]],
    ];
    const [rows, locked] = tables;
    const wanted = [tables, rows, rows![0], rows![2], ...locked!, inner];
    const objects = [...objectsIn(tables)];
    expect(objects).toHaveLength(wanted.length);
    for (const [at, object] of objects.entries()) expect(object).toBe(wanted[at]);
  });

  it('an object that is no array is looked at itself', () => {
    const row = { id: 1 };
    expect([...objectsIn(row)]).toEqual([row]);
  });

  const WAYS: readonly (readonly [string, (make: () => unknown) => object])[] = [
    ['useValue', (make) => ({ useValue: make() })],
    ['a factory', (make) => ({ useFactory: make })],
    ['an async factory', (make) => ({ useFactory: async () => make() })],
    ['a factory for each request', (make) => ({ useFactory: make, scope: Scope.REQUEST })],
    ['a transient factory', (make) => ({ useFactory: make, scope: Scope.TRANSIENT })],
  ];

  const ARRAYS: readonly (readonly [string, (...objects: unknown[]) => unknown])[] = [
    ['an array', (...objects) => objects],
    ['an array with other values', (...objects) => ['a', null, ...objects, 7]],
    ['a frozen array', (...objects) => Object.freeze(objects)],
    ['nested arrays', (...objects) => [objects.map((object) => [object])]],
  ];

  const CASES = WAYS.flatMap(([way, provide]) => ARRAYS.map(([what, array]) => [what, way, array, provide] as const));

  const providing = (way: object) => ({ provide: 'made', ...way }) as Provider;

  const lockedIn = (made: unknown) => [made].flat(Infinity).filter((one) => one instanceof Locked);

  it.each(CASES)('objects in %s of %s take their locks', async (_what, _way, array, provide) => {
    const app = await start({ providers: [providing(provide(() => array(new Locked(), new Locked())))] });
    const objects = lockedIn(await app.resolve('made'));
    expect(objects).toHaveLength(2);
    for (const object of objects) expect(await object.enter()).toBe('room');
  });

  it.each(CASES)('an override without the lock is refused in %s of %s', async (_what, _way, array, provide) => {
    class Forgetful extends Locked {
      override async enter() {
        ran.push('without the lock');
        return undefined;
      }
    }
    const providers = [providing(provide(() => array(new Locked(), new Forgetful())))];
    const starting = start({ providers }).then((app) => app.resolve('made'));
    await expect(starting).rejects.toBeInstanceOf(LockOptionsError);
    await expect(starting).rejects.toThrow(/^Forgetful\.enter\(\) overrides Locked\.enter\(\), which has @WithLock/);
  });
});

describe.each([
  ['itself', (client: object) => client],
  ['extended, as by $extends()', (client: object) => asPlainObject(Object.create(client) as object)],
])('an object whose constructor returns a Proxy that says it is a plain object, %s,', (_how, extend) => {
  const provided = (scope: Scope, type: Type = Client): Provider => ({ provide: 'made', scope, useFactory: () => extend(new type() as object) }); // prettier-ignore

  it.each<[string, () => Provider]>([
    ['useValue', () => ({ provide: 'made', useValue: extend(new Client()) })],
    ['a factory', () => provided(Scope.DEFAULT)],
    ['a factory for each request', () => provided(Scope.REQUEST)],
    ['a transient factory', () => provided(Scope.TRANSIENT)],
    ['an array', () => ({ provide: 'made', useFactory: () => [extend(new Client()), extend(new Client())] })],
  ])('takes its lock from %s', async (_way, provide) => {
    const app = await start({ providers: [provide()] });
    const made = [await app.resolve<Client | Client[]>('made')].flat();
    for (const client of made) expect([await client.enter(), await client.leave()]).toEqual(['room', 'room']);
    await using held = await app.get(LockService).lock('room');
    for (const client of made) await expect(client.enter()).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    held.assertHeld();
  });

  it.each([Scope.DEFAULT, Scope.REQUEST])(
    'is refused with an override without the lock, in scope %s',
    async (scope) => {
      class Unlocked extends Client {
        override async enter() {
          ran.push('without the lock');
          return undefined;
        }
      }
      const starting = start({ providers: [provided(scope, Unlocked)] }).then((app) => app.resolve('made'));
      await expect(starting).rejects.toThrow(/^Unlocked\.enter\(\) overrides Locked\.enter\(\), which has @WithLock/);
      expect(ran).toEqual([]);
    },
  );
});

it('an object whose constructor returns such a Proxy takes its lock where Nest builds it', async () => {
  const app = await start({ providers: [Client] });
  expect([await app.get(Client).enter(), await app.get(Client).leave()]).toEqual(['room', 'room']);
});

describe('an object behind a Proxy that throws', () => {
  const refuse = (): never => {
    throw new Error('nobody may look');
  };

  const TRAPS = ['getPrototypeOf', 'getOwnPropertyDescriptor', 'has', 'ownKeys'];

  const startWith = (object: object) => start({ providers: [{ provide: 'made', useFactory: () => object }] });

  it.each(TRAPS)('an object takes its lock although the %s of a prototype above its class throws', async (trap) => {
    class OnProxy {
      @WithLock('room')
      async enter(@CurrentLock() lock?: Lock) {
        return lock?.key;
      }
    }
    Object.setPrototypeOf(OnProxy.prototype, new Proxy({}, { [trap]: refuse }));
    const app = await startWith(new OnProxy());
    expect(await app.get<OnProxy>('made').enter()).toBe('room');
  });

  it.each(TRAPS)(
    'an object never runs without its lock when the %s of a prototype below its class throws',
    async (trap) => {
      const prototype = new Proxy(Object.create(Locked.prototype) as object, { [trap]: refuse });
      const app = await startWith(Object.setPrototypeOf(new Locked(), prototype) as Locked);
      const entered = app.get<Locked>('made').enter();
      if (trap === 'getPrototypeOf') await expect(entered).rejects.toBeInstanceOf(LockNotWiredError);
      else expect(await entered).toBe('room');
    },
  );

  it.each(['get', 'defineProperty', 'isExtensible', 'getOwnPropertyDescriptor'])(
    'an object with a lock is refused at boot when its %s throws',
    async (trap) => {
      const handler: ProxyHandler<Locked> =
        trap === 'get' ? { get: (target, name) => (typeof name === 'symbol' ? refuse() : Reflect.get(target, name) as unknown) } : { [trap]: refuse }; // prettier-ignore
      const starting = start({ providers: [{ provide: 'made', useValue: new Proxy(new Locked(), handler) }] });
      await expect(starting).rejects.toBeInstanceOf(LockOptionsError);
      await expect(starting).rejects.toThrow(/^The Locked given to Nest throws where a property of it is read or set/);
    },
  );
});
