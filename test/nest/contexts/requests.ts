import { Controller, Get, type INestApplication, type ModuleMetadata, Scope } from '@nestjs/common';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { GraphQLModule, Mutation, Query, ResolveField, Resolver } from '@nestjs/graphql';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { sendHttp2 } from '../../support/http/http-clients.js';
import { lambda } from '../../support/http/serverless.js';
import type { NewAdapter } from '../http-app.js';
import { PLATFORMS, startApp } from '../http-app.js';
import { type Context, type Running, twice } from './context.js';

async function running(
  adapter: NewAdapter,
  { imports = [], ...metadata }: ModuleMetadata,
  ask: (url: string) => Promise<unknown>,
): Promise<Running> {
  const app: INestApplication = await startApp(adapter, {
    imports: [LockTestingModule.forRoot(), ...imports],
    ...metadata,
  });
  const url = await app.getUrl();
  return { app, call: () => twice(() => ask(url)) };
}

const get = async (url: string) => (await fetch(`${url}/visitors`)).text();

const HTTP2: NewAdapter = () => new FastifyAdapter({ http2: true });
const getByHttp2 = (url: string) => sendHttp2('request')(Number(new URL(url).port), 'GET', '/visitors').text;

function controller(adapter: NewAdapter, scope: Scope, ask = get): Context {
  return async (room, locked) => {
    @Controller({ path: 'visitors', scope })
    class Visitors {
      @locked(Get())
      async run() {
        return room.visit();
      }
    }
    return running(adapter, { controllers: [Visitors] }, ask);
  };
}

/** Where nothing listens, and a response has no connection. */
const serverless: Context = async (room, locked) => {
  @Controller('visitors')
  class Visitors {
    @locked(Get())
    async run() {
      return room.visit();
    }
  }
  const module = await Test.createTestingModule({
    imports: [LockTestingModule.forRoot()],
    controllers: [Visitors],
  }).compile();
  const app = await module.createNestApplication(new ExpressAdapter(), { logger: false }).init();
  const invoke = lambda(app);
  return { app, call: () => twice(async () => (await invoke('/visitors')).body) };
};

function inherited(adapter: NewAdapter): Context {
  return async (room, locked) => {
    abstract class Base {
      @locked(Get())
      async run() {
        return room.visit();
      }
    }
    @Controller('visitors')
    class Visitors extends Base {}
    return running(adapter, { controllers: [Visitors] }, get);
  };
}

const SCHEMA =
  'type Query { visit: String, visitor: Visitor } type Mutation { visit: String } type Visitor { visit: String }';

function graphql(decorator: MethodDecorator, query: string): Context {
  return async (room, locked) => {
    @Resolver('Visitor')
    class Visitors {
      @Query('visitor')
      visitor() {
        return {};
      }

      @locked(decorator)
      async visit() {
        return room.visit();
      }
    }
    const ask = async (url: string) => {
      const response = await fetch(`${url}/graphql`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ query }),
      });
      return JSON.stringify(await response.json()).match(/"visit":"(\w+)"/)?.[1];
    };
    const module = GraphQLModule.forRoot<ApolloDriverConfig>({
      driver: ApolloDriver,
      typeDefs: SCHEMA,
      graphiql: false,
    });
    return running(PLATFORMS[0]![1], { imports: [module], providers: [Visitors] }, ask);
  };
}

export const REQUESTS: Record<string, Context> = {
  ...Object.fromEntries(
    PLATFORMS.flatMap(([platform, adapter]): [string, Context][] => [
      [`a controller on ${platform}`, controller(adapter, Scope.DEFAULT)],
      [`a request-scoped controller on ${platform}`, controller(adapter, Scope.REQUEST)],
      [`a handler that a controller inherits, on ${platform}`, inherited(adapter)],
    ]),
  ),
  'a controller on Fastify with HTTP/2': controller(HTTP2, Scope.DEFAULT, getByHttp2),
  'a request-scoped controller on Fastify with HTTP/2': controller(HTTP2, Scope.REQUEST, getByHttp2),
  'a controller behind a serverless adapter': serverless,
  '@Query (GraphQL)': graphql(Query('visit'), '{ visit }'),
  '@Mutation (GraphQL)': graphql(Mutation('visit'), 'mutation { visit }'),
  '@ResolveField (GraphQL)': graphql(ResolveField('visit'), '{ visitor { visit } }'),
};
