import { expect, it } from '@jest/globals';
import type { LockService } from 'nest-redis-lock';
import { TestLockService } from 'nest-redis-lock/testing';
import { turn } from '../support/deferred.js';
import { runFirstBlock } from './run-block.js';

interface LiveLocks {
  waits(longerThanMs: number): string[];
  holds(longerThanMs: number): string[];
}

it('the example of docs/reference/events.md knows who waits, and who holds a lock', async () => {
  const { LiveLocks } = runFirstBlock<{ LiveLocks: new (locks: LockService) => LiveLocks }>(
    'docs/reference/events.md',
    { '@nestjs/common': await import('@nestjs/common'), 'nest-redis-lock': await import('nest-redis-lock') },
  );
  const locks = new TestLockService();
  const live = new LiveLocks(locks);
  const lock = await locks.lock('account:42', { label: 'withdraw' });
  const others = ['pay in', 'pay out'].map((label) => locks.withLock('account:42', () => undefined, { label }));
  await turn();
  const ago = / for \d+ ms now$/;
  expect(live.waits(-1).map((line) => line.replace(ago, ''))).toEqual([
    'account:42: pay in waits,',
    'account:42: pay out waits,',
  ]);
  expect(live.holds(-1).map((line) => line.replace(ago, ''))).toEqual(['account:42: withdraw holds it,']);
  expect(live.waits(60_000)).toEqual([]);
  await lock.unlock();
  await Promise.all(others);
  expect([...live.waits(-1), ...live.holds(-1)]).toEqual([]);
  await locks.onApplicationShutdown();
});
