import { afterAll, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule, TestLockService } from 'nest-redis-lock/testing';
import * as prometheus from 'prom-client';
import { runFirstBlock } from './run-block.js';

/** The class of the page, as an app compiles it. */
async function lockMetrics(): Promise<new (locks: LockService) => object> {
  const page = runFirstBlock<{ LockMetrics: new (locks: LockService) => object }>('docs/guides/metrics.md', {
    '@nestjs/common': await import('@nestjs/common'),
    'nest-redis-lock': await import('nest-redis-lock'),
    'prom-client': prometheus,
  });
  return page.LockMetrics;
}

@Injectable()
class Accounts {
  @WithLock('account:<id>', { label: 'withdraw' })
  async withdraw(id: string, work: (id: string) => unknown = () => undefined) {
    return work(id);
  }
}

afterAll(() => prometheus.register.clear());

it('the metrics of docs/guides/metrics.md count what happens to locks', async () => {
  const LockMetrics = await lockMetrics();
  const app = await Test.createTestingModule({
    imports: [LockTestingModule.forRoot()],
    providers: [Accounts, LockMetrics],
  }).compile();
  await app.init();
  const [accounts, locks] = [app.get(Accounts), app.get(TestLockService)];
  const valueOf = async (name: string, labels = 'label="withdraw"') => {
    const line = (await prometheus.register.getSingleMetricAsString(name.replace(/_(count|sum)$/, '')))
      .split('\n')
      .find((line) => line.startsWith(`${name}{${labels}`));
    return Number(line?.split(' ').at(-1) ?? 0);
  };
  const callsThat = (outcome: string) => valueOf('lock_calls_total', `label="withdraw",outcome="${outcome}"`);

  await accounts.withdraw('1', async () => {
    expect(await valueOf('lock_held')).toBe(1);
    await accounts.withdraw('1', async () => expect(await valueOf('lock_held')).toBe(1));
  });
  await Promise.all([accounts.withdraw('1'), accounts.withdraw('1')]);
  expect(await callsThat('acquired')).toBe(4);
  expect(await valueOf('lock_held')).toBe(0);
  expect(await valueOf('lock_wait_seconds_count')).toBe(1);
  expect(await valueOf('lock_hold_seconds_count')).toBe(3);

  locks.simulate({ busy: 'account:1' });
  await expect(accounts.withdraw('1')).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
  expect(await callsThat('timeout')).toBe(1);
  locks.simulate({ down: true });
  await expect(accounts.withdraw('1')).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
  expect(await callsThat('unavailable')).toBe(1);
  locks.reset();

  await expect(accounts.withdraw('2', () => locks.forceUnlock('account:2'))).rejects.toMatchObject({
    code: 'LOCK_LOST',
  });
  expect(await valueOf('lock_lost_total', 'label="withdraw",reason="taken"')).toBe(1);
  expect(await valueOf('lock_held')).toBe(0);
  await app.close();
});
