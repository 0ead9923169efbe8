import { Injectable, type Type } from '@nestjs/common';
import { EventEmitter2, EventEmitterModule, OnEvent } from '@nestjs/event-emitter';
import { Cron, Interval, ScheduleModule, Timeout } from '@nestjs/schedule';
import { Test } from '@nestjs/testing';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { type Context, silently, twice } from './context.js';

/** Two instances of the class, so that a timer that goes off once calls twice. */
const TWO = ['one', 'two'];

function timed(decorator: () => MethodDecorator): Context {
  return async (room, locked) => {
    @Injectable()
    class Visitors {
      @locked(decorator())
      async run() {
        return room.visit();
      }
    }
    const providers = TWO.map((provide) => ({ provide, useClass: Visitors as Type }));
    const module = await Test.createTestingModule({
      imports: [LockTestingModule.forRoot(), ScheduleModule.forRoot()],
      providers,
    }).compile();
    const app = module.createNestApplication({ logger: false });
    return { app, call: () => silently(() => app.init()) };
  };
}

export const TIMERS: Record<string, Context> = {
  '@Cron': timed(() => Cron('* * * * * *')),
  '@Interval': timed(() => Interval(20)),
  '@Timeout': timed(() => Timeout(1)),

  '@OnEvent': async (room, locked) => {
    @Injectable()
    class Visitors {
      @locked(OnEvent('visit'))
      async run() {
        return room.visit();
      }
    }
    const app = await Test.createTestingModule({
      imports: [LockTestingModule.forRoot(), EventEmitterModule.forRoot()],
      providers: [Visitors],
    }).compile();
    await app.init();
    return { app, call: () => twice(async () => ((await app.get(EventEmitter2).emitAsync('visit')) as unknown[])[0]) };
  },
};
