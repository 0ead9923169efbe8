import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { type MiddlewareConsumer, Module, type NestModule, type Type } from '@nestjs/common';
import { LockService } from 'nest-redis-lock';

/** Makes a module whose middleware lets in one request to a route at a time, until its connection has closed. */
export function oneAtATime(route: string): Type {
  @Module({})
  class OneAtATime implements NestModule {
    constructor(private readonly locks: LockService) {}

    configure(consumer: MiddlewareConsumer) {
      const inTurn = (_request: unknown, response: ServerResponse, next: (error?: unknown) => void) => {
        // Before the wait: the client may leave meanwhile.
        const closed = once(response, 'close');
        const handled = () => {
          next();
          return closed;
        };
        this.locks.withLock('user:7', handled).catch(next);
      };
      consumer.apply(inTurn).forRoutes(route);
    }
  }
  return OneAtATime;
}
