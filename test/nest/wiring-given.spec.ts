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
  Post,
  Scope,
  UseFilters,
  UseGuards,
  UseInterceptors,
  UsePipes,
} from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { CurrentLock, type Lock, LockNotWiredError, LockOptionsError, LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import type { Response } from 'express';
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
