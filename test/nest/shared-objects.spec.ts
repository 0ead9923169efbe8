import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';

class Accounts {
  @WithLock('account', { wait: 0 })
  async run(inside: () => Promise<unknown>) {
    return inside();
  }
}

const apps: TestingModule[] = [];

afterEach(async () => {
  jest.restoreAllMocks();
  for (const app of apps.splice(0)) await app.close();
});

async function start(accounts: Accounts): Promise<TestingModule> {
  const providers = [{ provide: Accounts, useValue: accounts }];
  const app = await Test.createTestingModule({ imports: [LockTestingModule.forRoot()], providers }).compile();
  apps.push(app);
  return app.init();
}

describe('an object that is given to two apps', () => {
  /** In whose store it locks. */
  const whereItLocks = (accounts: Accounts) =>
    accounts.run(() => Promise.all(apps.map((app) => app.get(LockService).isLocked('account'))));

  it('is told at boot while both are open, and locks in an open one when the other has closed', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const accounts = new Accounts();
    for (let number = 0; number < 3; number++) await start(accounts);
    expect(warn.mock.calls.map(([text]) => text)).toEqual([
      expect.stringContaining('The Accounts given to Nest also belongs to another app'),
      expect.stringContaining('still open'),
    ]);

    expect(await whereItLocks(accounts)).toEqual([false, false, true]);
    await apps[1]!.close();
    expect(await whereItLocks(accounts)).toEqual([false, false, true]);
    await apps[2]!.close();
    expect(await whereItLocks(accounts)).toEqual([true, false, false]);
    await apps[0]!.close();
    await expect(whereItLocks(accounts)).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
  });

  it('is told at boot when the latest app has closed, but one before it is still open', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const accounts = new Accounts();
    await start(accounts);
    await (await start(accounts)).close();
    warn.mockClear();

    await start(accounts);
    expect(warn.mock.calls.map(([text]) => text)).toEqual([expect.stringContaining('still open')]);
  });

  it('is no matter when all the apps before it have closed', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const accounts = new Accounts();
    const before = [await start(accounts), await start(accounts)];
    for (const app of before) await app.close();
    warn.mockClear();

    await start(accounts);
    expect(warn).not.toHaveBeenCalled();
  });

  it('is no matter when the first app has closed', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const accounts = new Accounts();
    await (await start(accounts)).close();
    await start(accounts);
    expect(warn).not.toHaveBeenCalled();
    expect(await whereItLocks(accounts)).toEqual([false, true]);
  });
});
