import { afterEach, expect, it } from '@jest/globals';
import { type INestApplicationContext, Injectable, Logger } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { type Lock, CurrentLock, LockService, RedisLockModule, WithLock } from 'nest-redis-lock';
import { MemoryLockStore } from 'nest-redis-lock/testing';
import { deferred, until } from '../support/deferred.js';

@Injectable()
class Accounts {
  @WithLock('account:<0>')
  async withdraw(_id: string, work: (lock: Lock) => unknown, @CurrentLock() lock?: Lock) {
    await work(lock!);
  }

  @WithLock('account:<0>', { warnAfter: '20ms' })
  async payOut(_id: string, work: (lock: Lock) => unknown, @CurrentLock() lock?: Lock) {
    await work(lock!);
  }
}

let app: INestApplicationContext;

afterEach(async () => {
  Logger.overrideLogger(false);
  await app.close();
});

const start = async (options: object) => {
  app = await Test.createTestingModule({
    imports: [RedisLockModule.forRoot({ store: new MemoryLockStore(), ...options })],
    providers: [Accounts],
  }).compile();
  await app.init();
  const lines: string[] = [];
  Logger.overrideLogger({ log: () => undefined, error: () => undefined, warn: (line: string) => lines.push(line) });
  return { accounts: app.get(Accounts), lines };
};

it.each([
  ['of the module', { warnAfter: '20ms' }, 'withdraw'],
  ['of @WithLock', {}, 'payOut'],
] as const)(
  'the log has one line of a lock that is held for longer than the warnAfter %s',
  async (_, options, name) => {
    const { accounts, lines } = await start(options);
    const ended = deferred();
    let token = '';
    const held = accounts[name]('42', (lock) => ((token = lock.token), ended.promise));
    await until(() => lines.length > 0);
    ended.resolve();
    await held;
    expect(lines).toEqual([
      expect.stringMatching(
        new RegExp(
          `^Held for \\d+ ms, longer than its "warnAfter" of 20 ms: lock "account:42" for "Accounts\\.${name}" \\(`,
        ),
      ),
    ]);
    expect(lines[0]).toContain(`(token "${token}", fence `);
  },
);

it('the log has no line of a lock without warnAfter', async () => {
  const { accounts, lines } = await start({});
  await accounts.withdraw('42', () => accounts.payOut('43', () => until(() => lines.length > 0)));
  expect(lines).toEqual([expect.stringContaining('"account:43"')]);
  expect(await app.get(LockService).isLocked('account:42')).toBe(false);
});
