import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from '@jest/globals';
import request from 'supertest';
import { SampleStack } from '../sample/sample-stack.js';
import { TestChild } from '../support/processes/child-process.js';
import { deferred } from '../support/deferred.js';

// The embedded Postgres takes seconds to start on a small machine.
jest.setTimeout(60_000);

const LEASE_MS = 1000;

type Outcome = 'done' | { readonly code?: string; readonly cause?: string };

describe('A process of the sample that is stopped for longer than its lease, after it has read an account', () => {
  let stack: SampleStack;
  let api: string;
  let holder: TestChild | undefined;

  beforeAll(async () => {
    stack = await SampleStack.start();
    api = await stack.startApp();
  });

  afterEach(() => holder?.kill());
  afterAll(() => stack.stop());

  async function openAccount(): Promise<number> {
    const { body } = await request(api).post('/accounts').send({ owner: 'Ada', balance: 1_000 }).expect(201);
    return body.id;
  }

  async function balanceOf(account: number): Promise<number> {
    const { body } = await request(api).get(`/accounts/${account}`).expect(200);
    return body.balance;
  }

  /** Starts a process that withdraws 200 and stops itself on the way, in the section that the lock protects. */
  async function stopIn(
    account: number,
    pause: 'before the check' | 'before the write',
    fence = 'fence',
  ): Promise<TestChild> {
    holder = new TestChild('withdraw.mjs', stack.redis.url, stack.databaseUrl, LEASE_MS, account, 200, pause, fence);
    expect(await holder.message()).toBe('has read');
    return holder;
  }

  /** Lets the stopped process go on to its end. */
  async function goOn(stopped: TestChild): Promise<Outcome> {
    const told = stopped.message<{ outcome: Outcome }>();
    stopped.process.kill('SIGCONT');
    const { outcome } = await told;
    expect(await stopped.exit()).toBe(0);
    return outcome;
  }

  /** Answers when the other process no longer renews its lease, so when it has stopped. */
  const withdraw300 = (account: number, app = api) =>
    request(app).post(`/accounts/${account}/withdraw`).send({ amount: 300 }).expect(200);

  it('the database refuses a process that was stopped right before its write', async () => {
    const account = await openAccount();
    const stopped = await stopIn(account, 'before the write');
    await withdraw300(account);

    expect(await goOn(stopped)).toEqual({ code: 'LOCK_LOST', cause: 'StaleFenceError' });
    expect(await balanceOf(account)).toBe(700);
  });

  it('the database refuses a stopped process also when the newer holder has read and not yet written', async () => {
    const account = await openAccount();
    const stopped = await stopIn(account, 'before the write');
    const hasRead = deferred();
    const mayWrite = deferred();
    const slowApi = await stack.startApp({}, { approve: () => (hasRead.resolve(), mayWrite.promise) });
    const withdrawal = withdraw300(account, slowApi).then();
    await hasRead.promise;

    const outcome = await goOn(stopped).finally(() => mayWrite.resolve());
    await withdrawal;

    expect(outcome).toEqual({ code: 'LOCK_LOST', cause: 'StaleFenceError' });
    expect(await balanceOf(account)).toBe(700);
  });

  it('a stopped process overwrites newer data if the database does not compare fences', async () => {
    const account = await openAccount();
    const stopped = await stopIn(account, 'before the write', 'no fence');
    await withdraw300(account);

    expect(await goOn(stopped)).toMatchObject({ code: 'LOCK_LOST' });
    expect(await balanceOf(account)).toBe(800);
  });

  it('a stopped process does not ask the database at all when it wakes before its check', async () => {
    const account = await openAccount();
    const stopped = await stopIn(account, 'before the check');
    await withdraw300(account);

    expect(await goOn(stopped)).toEqual({ code: 'LOCK_LOST' });
    expect(await balanceOf(account)).toBe(700);
  });
});
