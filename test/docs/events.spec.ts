import { expect, it } from '@jest/globals';
import type { LockService } from 'nest-redis-lock';
import { TestLockService } from 'nest-redis-lock/testing';
import { until } from '../support/deferred.js';
import { runFirstBlock } from './run-block.js';

interface LiveLocks {
  whoWaits(): string[];
  whoIsLate(): string[];
}

it('the example of docs/reference/events.md knows who waits, and who is late', async () => {
  const { LiveLocks } = runFirstBlock<{ LiveLocks: new (locks: LockService) => LiveLocks }>(
    'docs/reference/events.md',
    { '@nestjs/common': await import('@nestjs/common'), 'nest-redis-lock': await import('nest-redis-lock') },
  );
  const locks = new TestLockService();
  const live = new LiveLocks(locks);
  const inTime = await locks.lock('account:41');
  const lock = await locks.lock('account:42', { label: 'withdraw', warnAfter: 20 });
  const others = ['pay in', 'pay out'].map((label) => locks.withLock('account:42', () => undefined, { label }));
  await until(() => live.whoIsLate().length > 0);
  expect(live.whoIsLate()).toEqual([expect.stringMatching(/^account:42: withdraw has held it for \d+\.\d s$/)]);
  expect(live.whoWaits()).toEqual([
    expect.stringMatching(/^account:42: pay in has waited for \d+\.\d s$/),
    expect.stringMatching(/^account:42: pay out has waited for \d+\.\d s$/),
  ]);
  await lock.unlock();
  await Promise.all(others);
  expect([...live.whoWaits(), ...live.whoIsLate()]).toEqual([]);
  await inTime.unlock();
  await locks.onApplicationShutdown();
});
