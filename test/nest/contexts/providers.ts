import { Injectable, type ModuleMetadata, Scope, SetMetadata } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { CommandBus, CommandHandler, CqrsModule, EventBus, EventsHandler, QueryBus, QueryHandler } from '@nestjs/cqrs';
import { Test, type TestingModule } from '@nestjs/testing';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { type Context, silently, twice } from './context.js';

interface Visitor {
  run(): Promise<unknown>;
}

async function start({ imports = [], ...metadata }: ModuleMetadata): Promise<TestingModule> {
  const module = await Test.createTestingModule({
    imports: [LockTestingModule.forRoot(), ...imports],
    ...metadata,
  }).compile();
  return module.init();
}

const TAGGED = SetMetadata('tag', 'kept');

function provided(
  scope: Scope,
  provider: (visitor: new () => Visitor) => object,
  get: (app: TestingModule, type: new () => Visitor) => Promise<Visitor>,
): Context {
  return async (room, locked) => {
    @Injectable({ scope })
    class Visitors implements Visitor {
      @locked(TAGGED)
      async run() {
        return room.visit();
      }
    }
    const app = await start({ providers: [provider(Visitors) as typeof Visitors] });
    return { app, call: () => twice(async () => (await get(app, Visitors)).run()) };
  };
}

const itself = (type: new () => Visitor) => type;
const got = async (app: TestingModule, type: new () => Visitor) => app.get(type);
const resolved = (app: TestingModule, type: new () => Visitor) => app.resolve(type);

export const PROVIDERS: Record<string, Context> = {
  'a provider': provided(Scope.DEFAULT, itself, got),
  'a request-scoped provider': provided(Scope.REQUEST, itself, resolved),
  'a transient provider': provided(Scope.TRANSIENT, itself, resolved),
  'a provider of useFactory': provided(Scope.DEFAULT, (type) => ({ provide: type, useFactory: () => new type() }), got),
  'a request-scoped provider of useFactory': provided(
    Scope.DEFAULT,
    (type) => ({ provide: type, scope: Scope.REQUEST, useFactory: () => new type() }),
    resolved,
  ),
  'a transient provider of useFactory': provided(
    Scope.DEFAULT,
    (type) => ({ provide: type, scope: Scope.TRANSIENT, useFactory: () => new type() }),
    resolved,
  ),
  'a provider of useValue': provided(Scope.DEFAULT, (type) => ({ provide: type, useValue: new type() }), got),
  'a provider of useClass': provided(Scope.DEFAULT, (type) => ({ provide: type, useClass: type }), got),
  'what ModuleRef.create() makes': provided(
    Scope.DEFAULT,
    () => ({ provide: 'nothing', useValue: 1 }),
    (app, type) => app.get(ModuleRef).create(type),
  ),

  'a method that a subclass inherits': async (room, locked) => {
    class Base implements Visitor {
      @locked(TAGGED)
      async run() {
        return room.visit();
      }
    }
    @Injectable()
    class Visitors extends Base {}
    const app = await start({ providers: [Visitors] });
    return { app, call: () => twice(() => app.get(Visitors).run()) };
  },

  'an override that calls super': async (room, locked) => {
    class Base implements Visitor {
      @locked(TAGGED)
      async run() {
        return room.visit();
      }
    }
    @Injectable()
    class Visitors extends Base {
      override async run() {
        return super.run();
      }
    }
    const app = await start({ providers: [Visitors] });
    return { app, call: () => twice(() => app.get(Visitors).run()) };
  },

  'an override with a decorator of its own': async (room, locked) => {
    class Base implements Visitor {
      async run() {
        return 'overridden';
      }
    }
    @Injectable()
    class Visitors extends Base {
      @locked(TAGGED)
      override async run() {
        return room.visit();
      }
    }
    const app = await start({ providers: [Visitors] });
    return { app, call: () => twice(() => app.get(Visitors).run()) };
  },

  'a handler of commands (CQRS)': async (room, locked) => {
    class Visit {}
    @CommandHandler(Visit)
    class Visitors {
      @locked(TAGGED)
      async execute() {
        return room.visit();
      }
    }
    const app = await start({ imports: [CqrsModule.forRoot()], providers: [Visitors] });
    return { app, call: () => twice(() => app.get(CommandBus).execute(new Visit())) };
  },

  'a handler of queries (CQRS)': async (room, locked) => {
    class Visit {}
    @QueryHandler(Visit)
    class Visitors {
      @locked(TAGGED)
      async execute() {
        return room.visit();
      }
    }
    const app = await start({ imports: [CqrsModule.forRoot()], providers: [Visitors] });
    return { app, call: () => twice(() => app.get(QueryBus).execute(new Visit())) };
  },

  'a handler of events (CQRS)': async (room, locked) => {
    class Visited {}
    @EventsHandler(Visited)
    class Visitors {
      @locked(TAGGED)
      async handle() {
        return room.visit();
      }
    }
    const app = await start({ imports: [CqrsModule.forRoot()], providers: [Visitors] });
    return { app, call: () => silently(() => app.get(EventBus).publishAll([new Visited(), new Visited()])) };
  },
};
