import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import {
  type ArgumentsHost,
  Catch,
  Controller,
  type ExceptionFilter,
  HttpException,
  Injectable,
  type INestApplicationContext,
  Logger,
  type LoggerService,
  type Type,
  UseFilters,
} from '@nestjs/common';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import { GraphQLModule, Query, Resolver } from '@nestjs/graphql';
import { type ClientProxy, ClientProxyFactory, MessagePattern, Transport } from '@nestjs/microservices';
import { ExpressAdapter } from '@nestjs/platform-express';
import { IoAdapter } from '@nestjs/platform-socket.io';
import { WsAdapter } from '@nestjs/platform-ws';
import { Test } from '@nestjs/testing';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { isLockError, LockExceptionFilter, LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { once } from 'node:events';
import { lastValueFrom, throwError } from 'rxjs';
import { io } from 'socket.io-client';
import { WebSocket } from 'ws';
import { messageOf } from '../../lib/http/handler-names.js';
import { freePort } from '../support/free-port.mjs';
import { startApp } from './http-app.js';

jest.setTimeout(30_000);

// Only HTTP requests are answered with what the factory makes.
const imports = () => [
  LockTestingModule.forRoot({ wait: 0, exceptionFactory: () => new HttpException('Locked', 423) }),
];
const closing: (() => unknown)[] = [];

afterEach(async () => {
  Logger.overrideLogger(false);
  for (const close of closing.splice(0).reverse()) await close();
});

@Injectable()
class Accounts {
  @WithLock('account:<id>')
  async open(id: string) {
    return id;
  }
}

const TOLD = {
  status: 'error',
  code: 'LOCK_TIMEOUT',
  statusCode: 409,
  message: 'Another request is working on this right now. Try again in a moment.',
};

/** What an app has of its own. */
@Catch()
class CatchAll implements ExceptionFilter {
  catch(error: unknown, host: ArgumentsHost) {
    const mine = { mine: isLockError(error) && error.code };
    if (host.getType() === 'rpc') return throwError(() => mine);
    host
      .switchToWs()
      .getClient<WebSocket>()
      .send(JSON.stringify({ event: 'mine', data: mine }));
    return undefined;
  }
}

/** Hears the warnings of the library. */
function warnings(): string[] {
  const lines: string[] = [];
  const ignore = () => undefined;
  const logger: LoggerService = { log: ignore, error: ignore, warn: (line: string) => lines.push(line) };
  Logger.overrideLogger(logger);
  return lines;
}

async function hold(app: INestApplicationContext): Promise<void> {
  closing.push(() => app.close());
  const held = await app.get(LockService).lock('account:42');
  closing.push(() => held.unlock());
}

describe('a lock error of a microservice', () => {
  @Controller()
  class AccountsController {
    constructor(private readonly accounts: Accounts) {}

    @MessagePattern('handler')
    @WithLock('account:<id>')
    async handler(id: string) {
      return id;
    }

    @MessagePattern('service')
    service(id: string) {
      return this.accounts.open(id);
    }
  }

  @Controller()
  @UseFilters(LockExceptionFilter)
  class FilteredController extends AccountsController {}

  async function client(): Promise<[ClientProxy, { host: string; port: number }]> {
    const options = { host: '127.0.0.1', port: await freePort() };
    const proxy = ClientProxyFactory.create({ transport: Transport.TCP, options });
    closing.push(() => proxy.close());
    return [proxy, options];
  }

  async function start(filters: ExceptionFilter[] = []): Promise<ClientProxy> {
    const [proxy, options] = await client();
    const module = await Test.createTestingModule({
      imports: imports(),
      controllers: [AccountsController],
      providers: [Accounts],
    }).compile();
    const app = module.createNestMicroservice({ transport: Transport.TCP, options, logger: false });
    app.useGlobalFilters(...filters);
    await app.listen();
    await hold(app);
    return proxy;
  }

  async function startHybrid(controller: Type, hybrid: { inheritAppConfig?: boolean }): Promise<ClientProxy> {
    const [proxy, options] = await client();
    const module = await Test.createTestingModule({
      imports: imports(),
      controllers: [controller],
      providers: [Accounts],
    }).compile();
    const app = module.createNestApplication(new ExpressAdapter(), { logger: false });
    app.connectMicroservice({ transport: Transport.TCP, options }, hybrid);
    await app.startAllMicroservices();
    await hold(app);
    return proxy;
  }

  const failure = (proxy: ClientProxy, pattern: string) =>
    lastValueFrom(proxy.send(pattern, '42')).catch((error: unknown) => error);

  it.each(['handler', 'service'])('a lock error of a microservice has a code and no key (%s)', async (pattern) => {
    const proxy = await start();
    const lines = warnings();
    expect(await failure(proxy, pattern)).toEqual(TOLD);
    expect(lines).toEqual([expect.stringContaining('"account:42"')]);
  });

  it("a lock error of a microservice reaches the app's own filter first", async () => {
    expect(await failure(await start([new CatchAll()]), 'service')).toEqual({ mine: 'LOCK_TIMEOUT' });
  });

  it('a lock error of a microservice says its code in a hybrid app that shares its filters', async () => {
    expect(await failure(await startHybrid(AccountsController, { inheritAppConfig: true }), 'service')).toEqual(TOLD);
    expect(await failure(await startHybrid(FilteredController, {}), 'service')).toEqual(TOLD);
  });
});

describe('a lock error of a gateway', () => {
  @WebSocketGateway()
  class Gateway {
    constructor(readonly accounts: Accounts) {}

    @SubscribeMessage('handler')
    @WithLock('account:<id>')
    async handler(_client: unknown, id: string) {
      return id;
    }

    @SubscribeMessage('service')
    service(_client: unknown, id: string) {
      return this.accounts.open(id);
    }
  }

  @WebSocketGateway()
  @UseFilters(CatchAll)
  class OwnGateway extends Gateway {}

  async function failure(gateway: Type, event: string): Promise<unknown> {
    const app = await startApp(
      () => new ExpressAdapter(),
      { imports: imports(), providers: [Accounts, gateway] },
      (app) => app.useWebSocketAdapter(new WsAdapter(app)),
    );
    await hold(app);
    const socket = new WebSocket((await app.getUrl()).replace('http', 'ws'));
    closing.push(() => socket.terminate());
    await once(socket, 'open');
    const answered = once(socket, 'message') as Promise<[Buffer]>;
    socket.send(JSON.stringify({ event, data: '42' }));
    return JSON.parse((await answered)[0].toString());
  }

  it.each(['handler', 'service'])('a lock error of a gateway has a code and no key (%s)', async (event) => {
    expect(await failure(Gateway, event)).toEqual({
      event: 'exception',
      data: { ...TOLD, cause: { pattern: event, data: '42' } },
    });
  });

  it("a lock error of a gateway reaches the app's own filter first", async () => {
    expect(await failure(OwnGateway, 'service')).toEqual({ event: 'mine', data: { mine: 'LOCK_TIMEOUT' } });
  });

  it.each(['handler', 'service'])(
    'a lock error of a gateway is the event "exception" of a socket.io client, where the %s takes the lock',
    async (event) => {
      const app = await startApp(
        () => new ExpressAdapter(),
        { imports: imports(), providers: [Accounts, Gateway] },
        (app) => app.useWebSocketAdapter(new IoAdapter(app)),
      );
      await hold(app);
      const client = io(await app.getUrl(), { transports: ['websocket'], reconnection: false });
      closing.push(() => client.disconnect());
      const told = new Promise((resolve, reject) => client.once('exception', resolve).once('connect_error', reject));
      client.emit(event, '42');
      expect(await told).toEqual({ ...TOLD, cause: { pattern: event, data: '42' } });
    },
  );
});

describe('a lock error of GraphQL', () => {
  @Resolver()
  class AccountsResolver {
    constructor(private readonly accounts: Accounts) {}

    @Query('resolver')
    @WithLock('account:42')
    async resolver() {
      return 'ran';
    }

    @Query('service')
    service() {
      return this.accounts.open('42');
    }

    @Query('invalid')
    invalid() {
      return this.accounts.open('');
    }
  }

  async function errors(query: string): Promise<unknown> {
    const typeDefs = 'type Query { resolver: String, service: String, invalid: String }';
    const graphql = GraphQLModule.forRoot<ApolloDriverConfig>({
      driver: ApolloDriver,
      typeDefs,
      graphiql: false,
      includeStacktraceInErrorResponses: false,
    });
    const app = await startApp(() => new ExpressAdapter(), {
      imports: [...imports(), graphql],
      providers: [Accounts, AccountsResolver],
    });
    await hold(app);
    const url = `${await app.getUrl()}/graphql`;
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query: `{ ${query} }` }),
    });
    return ((await response.json()) as { errors: unknown }).errors;
  }

  it.each(['resolver', 'service'])(
    'a lock error of GraphQL has its code and status in the extensions, and not the key, where the %s takes the lock',
    async (field) => {
      const extensions = { code: 'LOCK_TIMEOUT', status: 409 };
      expect(await errors(field)).toEqual([
        { message: TOLD.message, path: [field], locations: expect.anything(), extensions },
      ]);
    },
  );

  const INFO = { parentType: { name: 'Query' }, fieldName: 'account' };

  it('a lock error of GraphQL that blames the client has a code of its own', async () => {
    expect(await errors('invalid')).toEqual([
      expect.objectContaining({ extensions: { code: 'LOCK_KEY_INVALID', status: 400 } }),
    ]);
  });

  it.each([
    ['a field', [{}, {}, {}, INFO], 'Query.account'],
    ['references', [{}, {}, { parentType: { name: 'Query' }, fieldName: '_entities' }], 'Query._entities'],
    [
      'a parent and arguments with such names',
      [{ parentType: null, fieldName: 'title' }, { parentType: {}, fieldName: 'a' }, {}, INFO],
      'Query.account',
    ],
  ])('the log names what a resolver of %s resolves', (_what, args, named) => {
    const host = new ExecutionContextHost(args);
    host.setType('graphql');
    expect(messageOf(host)).toBe(named);
  });
});
