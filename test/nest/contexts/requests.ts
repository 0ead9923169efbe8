import { Controller, Get, type INestApplication, type ModuleMetadata, Scope } from '@nestjs/common';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { GraphQLModule, Mutation, Query, ResolveField, Resolver } from '@nestjs/graphql';
import { LockTestingModule } from 'nest-redis-lock/testing';
import type { NewAdapter } from '../http-app.js';
import { PLATFORMS, startApp } from '../http-app.js';
import { type Context, type Running, twice } from './context.js';

async function running(adapter: NewAdapter, { imports = [], ...metadata }: ModuleMetadata, ask: (url: string) => Promise<unknown>): Promise<Running> {
  const app: INestApplication = await startApp(adapter, { imports: [LockTestingModule.forRoot(), ...imports], ...metadata });
  const url = await app.getUrl();
  return { app, call: () => twice(() => ask(url)) };
}

const get = async (url: string) => (await fetch(`${url}/visitors`)).text();

function controller(adapter: NewAdapter, scope: Scope): Context {
  return async (room, locked) => {
    @Controller({ path: 'visitors', scope })
    class Visitors {
      @locked(Get())
      async run() {
        return room.visit();
      }
    }
    return running(adapter, { controllers: [Visitors] }, get);
  };
}

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

const SCHEMA = 'type Query { visit: String, visitor: Visitor } type Mutation { visit: String } type Visitor { visit: String }';

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
      const response = await fetch(`${url}/graphql`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ query }) });
      return JSON.stringify(await response.json()).match(/"visit":"(\w+)"/)?.[1];
    };
    const module = GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, typeDefs: SCHEMA, graphiql: false });
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
  '@Query (GraphQL)': graphql(Query('visit'), '{ visit }'),
  '@Mutation (GraphQL)': graphql(Mutation('visit'), 'mutation { visit }'),
  '@ResolveField (GraphQL)': graphql(ResolveField('visit'), '{ visitor { visit } }'),
};
