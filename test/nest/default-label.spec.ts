import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type INestApplicationContext, Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  type LockEvent,
  LockLostError,
  LockService,
  LockTimeoutError,
  RedisLockModule,
  WithLock,
} from 'nest-redis-lock';
import { deferred, until } from '../support/deferred.js';
import { RedisMonitor } from '../support/redis/redis-monitor.js';
import type { RedisServer } from '../support/redis/redis-server.js';
import { withRedis } from '../support/redis/with-redis.js';

type Work = (() => unknown) | undefined;
const LONG = 'a'.repeat(200);

@Injectable()
class Accounts {
  @WithLock('account:<0>')
  async withdraw(_id: string, work?: Work) {
    await work?.();
  }

  @WithLock('account:<0>', { label: 'pay out' })
  async payOut(_id: string, work?: Work) {
    await work?.();
  }

  @WithLock('account:<id>', { wait: 0 })
  async atOnce(id: string) {
    return id;
  }

  @WithLock('account:<id>', { fair: true })
  async inTurn(id: string) {
    return id;
  }

  @WithLock('account:<id>')
  async [LONG](id: string) {
    return id;
  }

  @WithLock(['account:<from>', 'account:<to>'], { label: 'transfer' })
  async transfer(from: string, to: string) {
    return [from, to];
  }

  @WithLock((id: string) => `account:${id}`)
  async byFunction(id: string) {
    return id;
  }

  @WithLock('account:<id>')
  async *statements(id: string) {
    yield id;
  }
}

class PrivateAccounts extends Accounts {}

describe('The label of @WithLock', () => {
  let server: RedisServer;
  let app: INestApplicationContext;
  let accounts: Accounts;
  let locks: LockService;
  let events: LockEvent[];

  withRedis((one) => ({ server } = one));

  beforeEach(async () => {
    app = await Test.createTestingModule({
      imports: [RedisLockModule.forRoot({ connection: server.url, wait: '5s' })],
      providers: [Accounts, PrivateAccounts],
    }).compile();
    await app.init();
    [accounts, locks, events] = [app.get(Accounts), app.get(LockService), []];
    locks.events.subscribe((event) => events.push(event));
  });

  afterEach(() => app.close());

  it('the label is Class.method in events, errors and inspect, for the holder and for waiters', async () => {
    const [inside, goOn] = [deferred(), deferred()];
    const held = accounts.withdraw('1', () => (inside.resolve(), goOn.promise));
    await inside.promise;
    const waiting = accounts.inTurn('1');
    await until(async () => (await locks.inspect('account:1'))!.waiters.length === 1);
    expect(await locks.inspect('account:1')).toMatchObject({
      holder: { label: 'Accounts.withdraw' },
      waiters: [{ label: 'Accounts.inTurn' }],
    });

    const late: unknown = await accounts.atOnce('1').catch((error: unknown) => error);
    expect(late).toBeInstanceOf(LockTimeoutError);
    expect(late).toMatchObject({
      label: 'Accounts.atOnce',
      detail: expect.stringContaining('lock "account:1" for "Accounts.atOnce"'),
    });
    goOn.resolve();
    await Promise.all([held, waiting]);
    expect(new Set(events.filter(({ keys }) => keys[0] === 'account:1').map(({ label }) => label))).toEqual(
      new Set(['Accounts.withdraw', 'Accounts.atOnce', 'Accounts.inTurn']),
    );
  });

  it('the label is in the error of a lost lock', async () => {
    const error: unknown = await accounts
      .withdraw('1', () => locks.forceUnlock('account:1'))
      .catch((error: unknown) => error);
    expect(error).toBeInstanceOf(LockLostError);
    expect(error).toMatchObject({
      label: 'Accounts.withdraw',
      detail: expect.stringContaining('Lost lock "account:1" for "Accounts.withdraw" after'),
    });
  });

  it('the label is the one that is given, and a lock that is taken by hand has none', async () => {
    await accounts.payOut('1');
    await locks.withLock('account:1', () => undefined);
    expect(events.map(({ type, label }) => `${type} ${label}`)).toEqual([
      'acquired pay out',
      'released pay out',
      'acquired undefined',
      'released undefined',
    ]);
  });

  it('the label is cut where the names are longer than a label may be', async () => {
    await (accounts as unknown as Record<string, (id: string) => Promise<string>>)[LONG]!('1');
    expect(events[0]!.label).toBe(`Accounts.${LONG}`.slice(0, 100));
  });

  it('the events tell the method, and the template of its key as it is written there', async () => {
    await accounts.withdraw('1');
    await accounts.transfer('1', '2');
    await accounts.byFunction('1');
    await app.get(PrivateAccounts).inTurn('1');
    // A stream calls with a signal of its own.
    for await (const id of accounts.statements('1')) expect(id).toBe('1');
    await (accounts as unknown as Record<string, (id: string) => Promise<string>>)[LONG]!('1');
    await locks.withLock('account:1', () => undefined);
    const told = [
      ['Accounts.withdraw', 'account:<0>'],
      ['Accounts.transfer', 'account:<from>, account:<to>'],
      ['Accounts.byFunction', undefined],
      ['Accounts.inTurn', 'account:<id>'],
      ['Accounts.statements', 'account:<id>'],
      [`Accounts.${LONG}`, 'account:<id>'],
      [undefined, undefined],
    ].map(([method, template]) => ({ method, template }));
    const of = (wanted: string) =>
      events.filter(({ type }) => type === wanted).map(({ method, template }) => ({ method, template }));
    expect(of('acquired')).toEqual(told);
    expect(of('released')).toEqual(told);
  });

  it('the label costs no further command to Redis', async () => {
    await accounts.withdraw('1');
    const monitor = await RedisMonitor.start(server.port);
    const commands = async () =>
      (await monitor.commands()).filter(({ inScript }) => inScript).map(({ args }) => args[0]!.toUpperCase());
    await commands();
    await locks.withLock('account:1', () => undefined);
    const without = await commands();
    await accounts.withdraw('1');
    expect(await commands()).toEqual(without);
    monitor.stop();
  });
});
