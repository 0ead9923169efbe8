import type { INestApplicationContext } from '@nestjs/common';
import { WithLock } from 'nest-redis-lock';
import type { Room } from './room.js';

/** Where `@WithLock` stands, seen from the decorator of the framework. */
export const PLACES = ['above', 'below'] as const;
export type Place = (typeof PLACES)[number];

/** Puts `@WithLock` and the decorator of a framework on a method, in the order of the test. */
export type Locked = (framework: MethodDecorator) => MethodDecorator;

export interface Running {
  readonly app: INestApplicationContext;
  /** Makes Nest call the method twice, at the same time; what it answers, if it does. */
  call(): readonly Promise<unknown>[];
  /** Ends what `app.close()` does not. */
  close?(): unknown;
}

/** One of the ways in which Nest calls a method: starts an app with a method that visits the room. */
export type Context = (room: Room, locked: Locked) => Promise<Running>;

export function lockedIn(room: Room, place: Place): Locked {
  const lock = WithLock(room.key) as MethodDecorator;
  return (framework) => (prototype, name, descriptor) => {
    const order = place === 'above' ? [framework, lock] : [lock, framework];
    return order.reduce((before, decorate) => decorate(prototype, name, before) ?? before, descriptor);
  };
}

export const twice = (call: () => Promise<unknown>): readonly Promise<unknown>[] => [call(), call()];

/** For calls that nobody gets an answer to. */
export function silently(call: () => unknown): readonly Promise<unknown>[] {
  void call();
  return [];
}
