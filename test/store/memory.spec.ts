import { expect, it, jest } from '@jest/globals';
import { MemoryLockStore } from 'nest-redis-lock/testing';
import { until } from '../support/deferred.js';
import { lockService } from '../support/stores/lock-services.js';
import type { Backing } from './backing.js';
import { promisesOfLists } from './list-contract.js';
import { promisesOfLocks } from './lock-contract.js';
import { promisesOfNesting } from './nesting-contract.js';
import { promisesOfSharing } from './sharing-contract.js';

const KEYS_OF_THE_CONTRACT = ['account:1', 'account:2', 'account:3', 'a', 'b', 'c'];

const start = async (): Promise<Backing> => {
  const store = new MemoryLockStore();
  return {
    store: () => store,
    stop: async () => undefined,
    waiters: (key, count) => until(() => store.waiters(key) === count),
    lockKeys: async () => {
      const locked = await Promise.all(KEYS_OF_THE_CONTRACT.map((key) => store.isLocked(key)));
      return KEYS_OF_THE_CONTRACT.filter((key, index) => locked[index] || store.waiters(key) > 0);
    },
  };
};

promisesOfLocks('memory', start);
promisesOfSharing('memory', start);
promisesOfLists('memory', start);
promisesOfNesting('memory', start);

it.each([{ fair: true }, { permits: 1 }])(
  'the memory store tells a waiter with %p when the time is over that `atLeast` keeps the key',
  async (options) => {
    const locks = lockService(new MemoryLockStore());
    const job = await locks.lock('report', { ...options, atLeast: 100 });
    const next = locks.lock('report', { ...options, wait: 600 });
    await until(async () => (await locks.inspect('report'))!.waiters.length === 1);
    await job.unlock();
    expect((await next).isHeld).toBe(true);
    await locks.close();
  },
);

it('the memory store queues a crowd, and lets it poll, in time that grows with its size and no faster', async () => {
  const store = new MemoryLockStore();
  const by = (token: number) =>
    ({ keys: ['account:1'], token: String(token), leaseMs: 60_000, sharing: 'exclusive', label: undefined }) as const;
  const ask = (token: number) => store.acquire({ ...by(token), queue: true });
  const crowd = Array.from({ length: 30_000 }, (_, index) => index);
  // However long it takes: none of them counts as dead.
  const clock = jest.spyOn(performance, 'now').mockReturnValue(performance.now());
  const begin = process.cpuUsage();
  await ask(-1);
  for (const token of crowd) expectAhead(await ask(token), token);
  for (const token of crowd) expectAhead(await ask(token), token);
  const { user, system } = process.cpuUsage(begin); // not the time that passed, as others may be at work, too
  expect((user + system) / 1000).toBeLessThan(8000);

  await store.cancel(by(10));
  expectAhead(await ask(30_000), 29_999);
  expectAhead(await ask(9), 9);
  expectAhead(await ask(11), 10);
  expectAhead(await ask(30_000), 29_999);
  clock.mockRestore();
}, 60_000);

function expectAhead(answer: Awaited<ReturnType<MemoryLockStore['acquire']>>, ahead: number): void {
  if (answer.granted || answer.ahead !== ahead) expect(answer).toMatchObject({ granted: false, ahead });
}
