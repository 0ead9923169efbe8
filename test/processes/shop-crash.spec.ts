import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Redis } from 'ioredis';
import pg from 'pg';
import request from 'supertest';
import { SampleStack } from '../sample/sample-stack.js';
import { until } from '../support/deferred.js';
import { sized } from '../support/lab.js';
import { TestChild } from '../support/processes/child-process.js';

// The embedded Postgres takes seconds to start on a small machine.
jest.setTimeout(120_000);

const LEASE_MS = 500;
const ROUNDS = sized(1, 20);

interface Task {
  readonly step: string;
  readonly signal?: NodeJS.Signals;
  readonly order?: object;
  readonly account?: number;
}

describe('A process of the sample that is killed in the middle of its work', () => {
  let stack: SampleStack;
  let api: string;
  let database: pg.Client;

  /** The process that takes the next task. It starts while the one before it works, because a start takes longest. */
  let spare: { readonly child: TestChild; readonly ready: Promise<unknown> };
  const start = () => {
    const child = new TestChild('shop-steps.mjs', stack.redis.url, stack.databaseUrl, LEASE_MS);
    spare = { child, ready: child.message() };
  };

  beforeAll(async () => {
    stack = await SampleStack.start();
    api = await stack.startApp();
    database = new pg.Client(stack.databaseUrl);
    await database.connect();
    start();
  });

  afterAll(async () => {
    await spare.ready;
    await spare.child.kill();
    await database.end();
    await stack.stop();
  });

  /** Has a process do a task. */
  async function begin(task: Task): Promise<TestChild> {
    const { child, ready } = spare;
    await ready;
    child.send(task);
    start();
    return child;
  }

  async function dieAt(task: Task): Promise<void> {
    const child = await begin(task);
    await child.exit();
    expect(child.process.signalCode).toBe('SIGKILL');
  }

  describe('leaves an order that the next try creates once:', () => {
    const count = async (table: string, serial: string): Promise<number> => {
      const { rows } = await database.query(`select count(*) from ${table} where serial = $1`, [serial]);
      return Number(rows[0].count);
    };

    it.each([
      'before the lock',
      'before the look at the record',
      'after the look at the record',
      'before the charge',
      'after the charge',
      'before the transaction',
      'before the row in orders',
      'before the row in order_records',
      'before the commit',
      'after the order',
      'after the lock',
    ])('%s', async (step) => {
      for (let round = 0; round < ROUNDS; round++) {
        const order = { serial: `${step.replaceAll(' ', '-')}-${round}`, item: 'A red mug', amount: 1_200 };
        await dieAt({ step, order });

        const again = () => request(api).post('/orders').send(order).expect(201);
        const [first, second] = [await again(), await again()];

        expect(second.body).toEqual(first.body);
        expect(first.body).toMatchObject(order);
        expect([await count('orders', order.serial), await count('charges', order.serial)]).toEqual([1, 1]);
      }
    });
  });

  describe('leaves a run of the nightly interest that another node completes:', () => {
    let redis: Redis;
    let accounts: number[];

    beforeAll(() => void (redis = new Redis(stack.redis.url)));
    afterAll(() => redis.disconnect());

    async function openAccounts(): Promise<void> {
      await database.query('truncate accounts, interest_runs cascade');
      // An earlier run may have kept the key, by its `atLeast`.
      await redis.del('lock:nightly-interest');
      const { rows } = await database.query(
        `insert into accounts (owner, balance) select 'Ada', 10000 from generate_series(1, 3) returning id`,
      );
      accounts = rows.map(({ id }) => id);
    }

    const payments = async (): Promise<number[]> => {
      const { rows } = await database.query('select account_id as id from interest_payments order by id');
      return rows.map(({ id }) => id);
    };

    /** Another node tries again and again (each minute, outside of tests), until nobody is at work. Returns how many accounts it has paid. */
    async function another(): Promise<number> {
      const { rows } = await database.query('select day from interest_runs');
      let paid = 0;
      await until(async () => {
        const { body } = await request(api).post('/interest/runs').send({ day: rows[0].day }).expect(200);
        paid = body.paid;
        return !body.skipped;
      });
      return paid;
    }

    async function expectAllPaidOnce(): Promise<void> {
      expect(await payments()).toEqual(accounts);
      const { rows } = await database.query('select distinct balance from accounts');
      expect(rows).toEqual([{ balance: '10100' }]);
    }

    beforeEach(openAccounts);

    it.each([
      [1, 'before the look at the account'],
      [1, 'after the look at the account'],
      [1, 'before the transaction'],
      [1, 'before the row in interest_runs'],
      [1, 'before the row in accounts'],
      [1, 'before the row in interest_payments'],
      [1, 'before the commit'],
      [2, 'after the account'],
    ])('with %i of three accounts paid, %s', async (paid, step) => {
      for (let round = 0; round < ROUNDS; round++) {
        if (round > 0) await openAccounts();
        await dieAt({ step, account: accounts[1]! });
        expect(await payments()).toEqual(accounts.slice(0, paid));

        expect(await another()).toBe(accounts.length - paid);
        await expectAllPaidOnce();
        expect(await another()).toBe(0);
      }
    });

    it('a process that stands still for longer than its lease does not go on beside it', async () => {
      const child = await begin({ step: 'before the transaction', signal: 'SIGSTOP', account: accounts[1]! });
      await child.stopped();
      expect(await another()).toBe(2);

      const told = child.message<{ outcome: { error: string[] } }>();
      child.goOn();
      expect((await told).outcome.error.at(-1)).toBe('StaleFenceError');
      await child.exit();
      await expectAllPaidOnce();
    });
  });
});
