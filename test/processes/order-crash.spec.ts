import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import pg from 'pg';
import request from 'supertest';
import { SampleStack } from '../sample/sample-stack.js';
import { sized } from '../support/lab.js';
import { TestChild } from '../support/processes/child-process.js';

// The embedded Postgres takes seconds to start on a small machine.
jest.setTimeout(120_000);

const LEASE_MS = 500;
const ROUNDS = sized(1, 20);

const STEPS = [
  'before the lock',
  'before the look at the record',
  'after the look at the record',
  'before the charge',
  'after the charge',
  'before the transaction',
  'before the row in orders',
  'before the row in order_records',
  'before the commit',
  'after the transaction',
  'after the lock',
];

describe('A process of the sample that is killed while it creates an order', () => {
  let stack: SampleStack;
  let api: string;
  let database: pg.Client;

  beforeAll(async () => {
    stack = await SampleStack.start();
    api = await stack.startApp();
    database = new pg.Client(stack.databaseUrl);
    await database.connect();
  });

  afterAll(async () => {
    await database.end();
    await stack.stop();
  });

  const count = async (table: string, serial: string): Promise<number> => {
    const { rows } = await database.query(`select count(*) from ${table} where serial = $1`, [serial]);
    return Number(rows[0].count);
  };

  it.each(STEPS)('%s leaves an order that the next try creates once', async (step) => {
    for (let round = 0; round < ROUNDS; round++) {
      const order = { serial: `${step.replaceAll(' ', '-')}-${round}`, item: 'A red mug', amount: 1_200 };
      const args = [stack.redis.url, stack.databaseUrl, LEASE_MS, JSON.stringify(order), step];
      const child = new TestChild('create-order.mjs', ...args);
      await child.exit();
      expect(child.process.signalCode).toBe('SIGKILL');

      const again = () => request(api).post('/orders').send(order).expect(201);
      const [first, second] = [await again(), await again()];

      expect(second.body).toEqual(first.body);
      expect(first.body).toMatchObject(order);
      expect([await count('orders', order.serial), await count('charges', order.serial)]).toEqual([1, 1]);
    }
  });
});
