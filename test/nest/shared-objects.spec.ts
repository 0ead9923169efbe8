import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Logger, type Provider, Scope } from '@nestjs/common';
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

const start = (accounts: Accounts) => startWith({ provide: Accounts, useValue: accounts });

async function startWith(...providers: Provider[]): Promise<TestingModule> {
  const app = await Test.createTestingModule({ imports: [LockTestingModule.forRoot()], providers }).compile();
  apps.push(app);
  return app.init();
}

describe('an object that is given to two apps', () => {
  /** In whose store it locks. */
  const whereItLocks = (accounts: Accounts) =>
    accounts.run(() => Promise.all(apps.map((app) => app.get(LockService).isLocked('account'))));

  it('an object of two open apps is reported at boot, and locks in an open one when the other has closed', async () => {
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

  it('an object of several apps is reported at boot when an app before the latest is still open', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const accounts = new Accounts();
    await start(accounts);
    await (await start(accounts)).close();
    warn.mockClear();

    await start(accounts);
    expect(warn.mock.calls.map(([text]) => text)).toEqual([expect.stringContaining('still open')]);
  });

  it('an object of several apps is not reported when all before the last have closed', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const accounts = new Accounts();
    const before = [await start(accounts), await start(accounts)];
    for (const app of before) await app.close();
    warn.mockClear();

    await start(accounts);
    expect(warn).not.toHaveBeenCalled();
  });

  it('an object of two apps is not reported when the first has closed', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const accounts = new Accounts();
    await (await start(accounts)).close();
    await start(accounts);
    expect(warn).not.toHaveBeenCalled();
    expect(await whereItLocks(accounts)).toEqual([false, true]);
  });

  it('many objects of two apps are reported in one line, with their number and some of their classes', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const classes = ['A', 'B', 'C', 'D', 'E'].map((name) => ({ [name]: class extends Accounts {} })[name]!);
    const objects = Array.from({ length: 1000 }, (_none, at) => new classes[at % classes.length]!());
    const providers = objects.map((useValue, at) => ({ provide: `object ${at}`, useValue }));
    await startWith(...providers);
    await startWith(...providers);
    expect(warn.mock.calls.map(([text]) => text)).toEqual([
      expect.stringMatching(
        /^1000 objects given to Nest \(of A, B, C and 2 other classes\) also belong to another app of this process/,
      ),
    ]);
  });

  it('objects of two apps are reported once for each factory that gives them to requests', async () => {
    const warn = jest.spyOn(Logger.prototype, 'warn').mockImplementation(() => undefined);
    const objects = Array.from({ length: 10 }, () => new Accounts());
    const factory = () => {
      const left = [...objects];
      return { provide: Accounts, scope: Scope.REQUEST, useFactory: () => left.pop() };
    };
    const both = [await startWith(factory()), await startWith(factory())];
    for (const app of both) for (let count = 0; count < objects.length; count++) await app.resolve(Accounts);
    expect(warn.mock.calls.map(([text]) => text)).toEqual([
      expect.stringContaining('The Accounts given to Nest also belongs to another app'),
    ]);
  });
});
