import { AsyncLocalStorage } from 'node:async_hooks';
import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { turn } from '../support/deferred.js';

const outside = AsyncLocalStorage.snapshot();
let inside: number;
let most: number;
let listened: Promise<unknown>[];

async function work(): Promise<void> {
  most = Math.max(most, ++inside);
  for (let turns = 0; turns < 5; turns++) await turn();
  inside--;
}

@Injectable()
class Orders {
  readonly events = new EventEmitter().on('order.paid', () => listened.push(this.bookStock('7')));

  @WithLock('order:<id>')
  async pay(id: string, emit: (tell: () => void) => void) {
    emit(() => this.events.emit('order.paid'));
    await turn();
    return id;
  }

  @WithLock('order:<id>')
  async bookStock(id: string) {
    await work();
    return id;
  }
}

let module: TestingModule;

beforeEach(async () => {
  [inside, most, listened] = [0, 0, []];
  module = await Test.createTestingModule({ imports: [LockTestingModule.forRoot()], providers: [Orders] }).compile();
});

afterEach(() => module.close());

it('a listener that is started outside of the call that emits waits for the lock; inside, it loses the lock', async () => {
  const orders = module.get(Orders);
  await Promise.all([1, 2, 3].map(() => orders.pay('7', outside)));
  await Promise.all(listened);
  expect([listened.length, most]).toEqual([3, 1]);

  await orders.pay('7', (tell) => tell());
  await expect(listened.at(-1)).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'unlocked' });
});
