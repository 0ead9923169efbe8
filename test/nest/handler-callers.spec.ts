import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import {
  type CallHandler,
  Controller,
  type ExecutionContext,
  type INestApplication,
  Injectable,
  Logger,
  type NestInterceptor,
  Post,
  SetMetadata,
  UseInterceptors,
} from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { type LockOptionsError, LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { AsyncResource } from 'node:async_hooks';
import { from, mergeMap, type Observable } from 'rxjs';
import request from 'supertest';
import { type Deferred, deferred, until } from '../support/deferred.js';
import { PLATFORMS, startApp } from './http-app.js';

type Routes = Record<string, () => Promise<unknown>>;

const elsewhere = new AsyncResource('elsewhere');

/** Calls what the handler has returned for the route, and runs it in a foreign async context. */
class CallsReturned implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const route = context.getHandler().name;
    return elsewhere.runInAsyncScope(() =>
      next.handle().pipe(mergeMap((routes: Routes) => from(elsewhere.runInAsyncScope(routes[route]!)))),
    );
  }
}

class TsRestHandlerInterceptor extends CallsReturned {}

/** Of oRPC. */
class ImplementInterceptor extends CallsReturned {}

const PROCEDURE = { '~orpc': { handler: () => 'pay' } };

const ROUTE = Symbol('ts-rest-app-route');

/** Does what `@TsRestHandler` does for a contract of several routes: it makes a method for each of them. */
function SeveralRoutes(...routes: readonly string[]): MethodDecorator {
  return (target, name, descriptor) => {
    const below = descriptor.value as unknown as (...args: unknown[]) => Promise<Routes>;
    for (const route of routes) {
      const method = `${String(name)}_${route}`;
      const copy = {
        [route]: async function (this: object, ...args: unknown[]) {
          return below.apply(this, args);
        },
      }[route]!;
      Object.defineProperty(target, method, { configurable: true, writable: true, value: copy });
      const copied = Object.getOwnPropertyDescriptor(target, method)!;
      Post(`:id/${route}`)(target, method, copied);
      for (const key of Reflect.getMetadataKeys(below) as unknown[])
        Reflect.defineMetadata(key, Reflect.getMetadata(key, below), copy);
      SetMetadata(ROUTE, { routeKey: route })(target, method, copied);
      UseInterceptors(CallsReturned)(target, method, copied);
    }
  };
}

let inside: string[];
let goOn: Deferred;

async function work(what: string): Promise<string> {
  inside.push(what);
  await goOn.promise;
  return what;
}

const routes = async (): Promise<Routes> => ({ pay: () => work('pay'), refund: () => work('refund') });

@Controller('orders')
class Orders {
  @SeveralRoutes('pay', 'refund')
  @WithLock('order:<params.id>', { scope: 'request', wait: 0 })
  async handle() {
    return routes();
  }
}

@Controller('unlocked')
class Unlocked {
  @SeveralRoutes('pay', 'refund')
  @WithLock('order')
  async handle() {
    return routes();
  }
}

@Controller('single')
class Single {
  @Post()
  @WithLock('order')
  async handle() {
    return () => work('pay');
  }
}

@Controller('procedures')
class Procedures {
  @Post()
  @WithLock('order')
  async handle() {
    return { pay: PROCEDURE, refund: PROCEDURE };
  }
}

@Controller('values')
class Values {
  @Post()
  @WithLock('order')
  async handle() {
    return { id: 1, paid: () => true };
  }
}

@Injectable()
class Service {
  @WithLock('order')
  async handle() {
    return routes();
  }
}

beforeEach(() => {
  inside = [];
  goOn = deferred();
});

afterEach(() => void jest.restoreAllMocks());

describe.each(PLATFORMS)('On %s, a handler whose decorator makes a method for each route', (_name, adapter) => {
  let app: INestApplication;

  beforeEach(async () => {
    app = await startApp(adapter, { imports: [LockTestingModule.forRoot()], controllers: [Orders] });
  });

  afterEach(() => app.close());

  const post = (route: string) => request(app.getHttpServer() as never).post(`/orders/7/${route}`);

  it("scope: 'request' covers what the handler has returned, for all of its routes", async () => {
    const first = post('pay').then(({ text }) => text);
    await until(() => inside.length > 0);
    expect((await post('refund')).status).toBe(409);
    goOn.resolve();
    expect(await first).toBe('pay');
    expect((await post('refund')).text).toBe('refund');
    await until(async () => !(await app.get(LockService).isLocked('order:7')));
    expect(inside).toEqual(['pay', 'refund']);
  });
});

it.each([
  ['says, once for each method, that the functions that a handler returns run without the lock', Single, 1],
  ['says so of the functions of several routes', Unlocked, 1],
  ['says so of procedures of oRPC', Procedures, 1],
  ['says nothing of an object that has functions among other things', Values, 0],
  ['says nothing of functions that a service returns', Service, 0],
])('the log %s', async (_what, type, lines) => {
  const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue(undefined);
  const module = await Test.createTestingModule({
    imports: [LockTestingModule.forRoot()],
    [type === Service ? 'providers' : 'controllers']: [type],
  }).compile();
  for (let call = 0; call < 2; call++) await module.get<Service>(type).handle();
  const said = warn.mock.calls.map(([text]) => String(text)).filter((text) => text.includes('functions'));
  expect(said).toHaveLength(lines);
  await module.close();
});

it('@WithLock above such a decorator stops the boot: the lock would not cover what a route does', async () => {
  @Controller()
  class Above {
    @WithLock('order:<params.id>', { scope: 'request' })
    @SeveralRoutes('pay')
    async handle() {
      return routes();
    }

    @WithLock('order')
    async handle_other() {}

    @WithLock('order:<params.id>', { scope: 'request' })
    @UseInterceptors(TsRestHandlerInterceptor)
    async one() {
      return () => work('pay');
    }

    @WithLock('order:<params.id>', { scope: 'request' })
    @UseInterceptors(ImplementInterceptor)
    async procedure() {
      return PROCEDURE;
    }
  }
  const module = await Test.createTestingModule({
    imports: [LockTestingModule.forRoot()],
    controllers: [Above],
  }).compile();
  const refusal = (await module.init().catch((error: LockOptionsError) => error)) as LockOptionsError;
  const above = { handle: '@TsRestHandler', one: '@TsRestHandler', procedure: '@Implement' };
  for (const [method, by] of Object.entries(above))
    expect(refusal.detail).toContain(
      `@WithLock on Above.${method}() stands above ${by}, so the lock would not cover what a route does.`,
    );
  await module.close();
});
