import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Redis } from 'ioredis';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import request from 'supertest';
import { deferred, until } from '../support/deferred.js';
import { SampleStack } from './sample-stack.js';

// The embedded Postgres takes seconds to start on a small machine.
jest.setTimeout(60_000);

let stack: SampleStack;
/** Two processes' worth of apps, which allow the demonstrations. */
let apis: string[];
let database: pg.Client;

beforeAll(async () => {
  stack = await SampleStack.start();
  apis = [await stack.startApp({ demoUnsafe: true }), await stack.startApp({ demoUnsafe: true })];
  database = new pg.Client(stack.databaseUrl);
  database.on('error', () => {}); // one test stops the database
  await database.connect();
});

afterAll(async () => {
  await database.end();
  await stack.stop();
});

const get = (path: string) => request(apis[0]!).get(path);
const send = (path: string, body: object = {}, app = 0) => request(apis[app]!).post(path).send(body);

/** Sends the same request many times at once, to all apps in turn. */
const crowd = (size: number, path: string, body: object = {}) =>
  Promise.all(Array.from({ length: size }, (_, turn) => send(path, body, turn % apis.length)));

const statusesOf = (responses: readonly { status: number }[]) => {
  const counts: Record<number, number> = {};
  for (const { status } of responses) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
};

async function count(query: string, value: unknown): Promise<number> {
  const { rows } = await database.query(query, [value]);
  return Number(rows[0].count);
}

describe('stock', () => {
  let piece = 0;
  const restock = async (pieces: number): Promise<string> => {
    const path = `/stock/MUG-${++piece}`;
    await request(apis[0]!).put(path).send({ pieces }).expect(200);
    return path;
  };

  it('a rush of buyers gets as many pieces as there are', async () => {
    const mug = await restock(10);
    const sold = await crowd(24, `${mug}/buy`);
    expect(statusesOf(sold)).toEqual({ 200: 10, 422: 14 });
    expect((await get(mug)).body).toMatchObject({ pieces: 0, sold: 10 });
  });

  it('without the lock, pieces are sold that are not there', async () => {
    const mug = await restock(3);
    await crowd(24, `${mug}/buy?unsafe=true`);
    expect((await get(mug)).body.sold).toBeGreaterThan(3);
  });

  it('a buyer for whom the waiting room has no place gets a 409 that says when to try again', async () => {
    const mug = await restock(1);
    const others = new Redis(stack.redis.url);
    const sku = mug.slice('/stock/'.length);
    await others.set(`lock:waiting-room:${sku}`, 'others', 'PX', 60_000);
    const { headers, body } = await send(`${mug}/buy`).expect(409);
    others.disconnect();
    expect(body).toMatchObject({ code: 'LOCK_TIMEOUT', retryable: true });
    expect(Number(headers['retry-after'])).toBeGreaterThan(0);
  });

  it('the shop says what is wrong with a sku, and that it has no stock of another', async () => {
    expect((await send('/stock/red mug/buy').expect(400)).body.message).toEqual([expect.stringContaining('sku must')]);
    await send('/stock/NOTHING/buy').expect(404);
    await get('/stock/NOTHING').expect(404);
    await request(apis[0]!).put('/stock/MUG').send({ pieces: -1 }).expect(400);
  });
});

describe('orders', () => {
  const order = { item: 'A red mug', amount: 1_200 };
  let serial = '';
  let last = 0;
  beforeEach(() => void (serial = `web-${++last}`));
  const orders = () => count('select count(*) from orders where serial = $1', serial);
  const charges = async () => (await get(`/orders/${serial}/charges`).expect(200)).body.charges;

  it('an order that is sent many times is created and charged once, and each gets the same answer', async () => {
    const responses = await crowd(8, '/orders', { serial, ...order });
    expect(statusesOf(responses)).toEqual({ 201: 8 });
    expect(new Set(responses.map(({ body }) => body.id)).size).toBe(1);
    expect(await orders()).toBe(1);
    expect(await charges()).toBe(1);
    expect((await get(`/orders/${serial}`).expect(200)).body).toEqual(responses[0]!.body);
  });

  it('without the lock, an order that is sent twice is created and charged twice', async () => {
    await crowd(2, '/orders?unsafe=true', { serial, ...order });
    expect(await orders()).toBe(2);
    expect(await charges()).toBe(2);
  });

  it('another order under the same serial is refused with 422', async () => {
    await send('/orders', { serial, ...order }).expect(201);
    const { body } = await send('/orders', { serial, ...order, amount: 1 }).expect(422);
    expect(body.message).toContain(serial);
    expect(await charges()).toBe(1);
  });

  it('after a process died between the charge and the order, only the order that was charged can be created', async () => {
    const values = [serial, order.amount];
    await database.query('insert into charges (idempotency_key, serial, amount) values ($1, $1, $2)', values);

    const { body } = await send('/orders', { serial, ...order, amount: 1 }).expect(422);
    expect(body.message).toBe(`The serial ${serial} belongs to another order. Take a new one for each order.`);
    expect(await orders()).toBe(0);

    await send('/orders', { serial, ...order }).expect(201);
    expect([await orders(), await charges()]).toEqual([1, 1]);
  });

  it('an order is checked before it is locked', async () => {
    await send('/orders', { serial: 'a b', ...order }).expect(400);
    await send('/orders', { serial, item: ' ', amount: 0 }).expect(400);
    await get('/orders/none').expect(404);
  });
});

describe('interest', () => {
  let accounts: number[];
  let day = '';
  let last = 0;
  const payments = async (id: number) => (await get(`/interest/accounts/${id}`).expect(200)).body.payments;
  const balances = async () => Promise.all(accounts.map(async (id) => (await get(`/accounts/${id}`)).body.balance));

  beforeEach(async () => {
    day = `2026-01-0${++last}`;
    await database.query('truncate accounts cascade');
    const opened = [1, 2, 3].map(() => send('/accounts', { owner: 'Ada', balance: 10_000 }).expect(201));
    accounts = (await Promise.all(opened)).map(({ body }) => body.id).sort((a, b) => a - b);
  });

  it('one node pays the interest, once to each account', async () => {
    const runs = await crowd(6, '/interest/runs', { day });
    expect(statusesOf(runs)).toEqual({ 200: 6 });
    expect(runs.reduce((sum, { body }) => sum + body.paid, 0)).toBe(3);
    expect(runs.some(({ body }) => body.skipped)).toBe(true);
    expect(await balances()).toEqual([10_100, 10_100, 10_100]);
  });

  it('without the lock, each node pays the interest', async () => {
    await crowd(2, '/interest/runs?unsafe=true', { day });
    expect(await payments(accounts[0]!)).toBe(2);
  });

  it('a run that ended in the middle goes on where it stopped', async () => {
    const others = new Redis(stack.redis.url);
    await others.set(`lock:account:${accounts[1]}`, 'others', 'PX', 60_000);
    apis.push(await stack.startApp({ lockWait: '50ms' }));
    await send('/interest/runs', { day }, 2).expect(409);
    expect(await balances()).toEqual([10_100, 10_000, 10_000]);

    await others.del(`lock:account:${accounts[1]}`);
    others.disconnect();
    const { body } = await send('/interest/runs', { day }).expect(200);
    expect(body).toEqual({ day, paid: 2, skipped: false });
    expect(await balances()).toEqual([10_100, 10_100, 10_100]);
    apis.pop();
  });

  it('an account that can hold no more does not end the run for the others', async () => {
    await database.query('update accounts set balance = $2 where id = $1', [accounts[0], Number.MAX_SAFE_INTEGER - 5]);
    await send('/interest/runs', { day }).expect(200);
    expect(await balances()).toEqual([Number.MAX_SAFE_INTEGER, 10_100, 10_100]);
  });

  it('a node whose run a newer one has taken over can not go on', async () => {
    await send('/interest/runs', { day }).expect(200);
    await database.query('update interest_runs set fence = $2, paid_up_to = 0 where day = $1', [day, 2 ** 52]);
    const { body } = await send('/interest/runs', { day }).expect(503);
    expect(body.code).toBe('LOCK_LOST');
    expect(await balances()).toEqual([10_100, 10_100, 10_100]);
  });

  it.each(['2026-02-30', '23.11.2026', ''])('the shop pays no interest for the day %j', async (wrong) => {
    await send('/interest/runs', { day: wrong }).expect(400);
  });
});

describe('the report', () => {
  const reports = () => count('select count(*) from reports where id > $1', 0);
  const ask = (query = '') =>
    Promise.all(
      Array.from({ length: 12 }, (_, turn) =>
        request(apis[turn % 2]!)
          .get(`/report${query}`)
          .expect(200),
      ),
    );
  beforeEach(() => request(apis[0]!).delete('/report').expect(204));

  it('a report is made once, however many ask for it', async () => {
    const answers = await ask();
    expect(await reports()).toBe(1);
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1);
  });

  it('without the lock, everybody who asks has a report made', async () => {
    await ask('?unsafe=true');
    expect(await reports()).toBeGreaterThan(1);
  });
});

describe('the bank', () => {
  const payout = { iban: 'DE02120300000000202051', amount: 100 };

  it('payouts stay within the limit of the bank', async () => {
    const before = stack.bank.counts.refused;
    expect(statusesOf(await crowd(10, '/payouts', payout))).toEqual({ 200: 10 });
    expect(stack.bank.counts.refused).toBe(before);
  });

  it('without the lock, the bank refuses', async () => {
    const statuses = statusesOf(await crowd(10, '/payouts?unsafe=true', payout));
    expect(statuses[502]).toBeGreaterThan(0);
  });

  it('the shop says why a payout failed', async () => {
    const alone = await stack.startApp({ bankUrl: undefined });
    const { body } = await request(alone).post('/payouts').send(payout).expect(502);
    expect(body.message).toBe('The bank did not take the payout: BANK_URL is not set.');
    await send('/payouts', { ...payout, iban: 'mine' }).expect(400);
  });
});

describe('when the shop stops', () => {
  const account = async (): Promise<string> => {
    const { body } = await send('/accounts', { owner: 'Ada', balance: 10 }).expect(201);
    return `/accounts/${body.id}`;
  };
  /** Lets each request wait with its lock, until it may go on. */
  const holding = () => {
    const [holds, goesOn] = [deferred(), deferred()];
    return { holds, goesOn, approve: () => (holds.resolve(), goesOn.promise) };
  };
  /** Sends it, and says how it ended. */
  const outcome = (app: string, path: string, body: object) =>
    request(app)
      .post(path)
      .send(body)
      .then(
        ({ status, body }) => ({ status, ...body }),
        () => 'cut',
      );

  it('who holds a lock can still write, after its client has left', async () => {
    const { holds, goesOn, approve } = holding();
    const app = await stack.startApp({}, { approve });
    const path = await account();
    const client = await connectTo(app);
    client.write(withdrawal(path));
    await holds.promise;

    client.destroy();
    const stopped = stack.stopApp();
    await setTimeout(100); // nothing tells that Nest has come to the hooks after its requests
    goesOn.resolve();
    await stopped;

    expect((await get(path)).body.balance).toBe(9);
  });

  it('a request that goes on after the grace is cut off, and changes nothing', async () => {
    const { holds, goesOn, approve } = holding();
    const app = await stack.startApp({ shutdownGraceMs: 100 }, { approve });
    const path = await account();
    const answer = outcome(app, `${path}/withdraw`, { amount: 1 });
    await holds.promise;

    const stopped = stack.stopApp();
    expect(await answer).toBe('cut');
    goesOn.resolve();
    await stopped;

    expect((await get(path)).body.balance).toBe(10);
  });

  it('a request that is under way has until the end of the grace, and then time to answer that it was told to stop', async () => {
    const slowBank = createServer().listen(0, '127.0.0.1');
    await once(slowBank, 'listening');
    const bankUrl = `http://127.0.0.1:${(slowBank.address() as AddressInfo).port}`;
    const app = await stack.startApp({ shutdownGraceMs: 1_500, bankUrl });
    const answer = outcome(app, '/payouts', { iban: 'DE02120300000000202051', amount: 100 });
    await once(slowBank, 'request');

    await stack.stopApp();
    slowBank.close().closeAllConnections();
    expect(await answer).toMatchObject({ status: 503, code: 'LOCK_LOST' });
  });

  it('each connection closes as soon as it has no request, also one that never had any', async () => {
    const { holds, goesOn, approve } = holding();
    const app = await stack.startApp({ shutdownGraceMs: 60_000 }, { approve });
    const [unused, used, busy] = [await connectTo(app), await connectTo(app), await connectTo(app)];
    used.write('GET /accounts/1 HTTP/1.1\r\nHost: shop\r\n\r\n');
    await once(used, 'data');
    const path = await account();
    // The second request is sent ahead: the first one's answer does not make the connection idle.
    busy.write(`GET ${path} HTTP/1.1\r\nHost: shop\r\n\r\n${withdrawal(path)}`);
    await Promise.all([holds.promise, once(busy, 'data')]);

    const stopped = stack.stopApp();
    await Promise.all([once(unused, 'close'), once(used, 'close')]);
    goesOn.resolve();
    const [answer] = await once(busy, 'data');
    expect(String(answer)).toContain('HTTP/1.1 200 OK');
    await stopped;
  });

  async function connectTo(url: string): Promise<Socket> {
    const socket = connect(Number(new URL(url).port), '127.0.0.1').resume();
    await once(socket, 'connect');
    return socket;
  }

  function withdrawal(path: string): string {
    const body = JSON.stringify({ amount: 1 });
    const headers = `Host: shop\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
    return `POST ${path}/withdraw HTTP/1.1\r\n${headers}\r\n\r\n${body}`;
  }
});

describe('the health of the shop', () => {
  const both = ['locks', 'database'];

  it.each([
    { away: 'database', stop: () => stack.database.stop(), start: () => stack.database.start() },
    { away: 'locks', stop: () => stack.redis.kill(), start: () => stack.redis.restart() },
  ])('says 503 while one of both is away ($away), which one, and is good again by itself', async (one) => {
    await one.stop();
    const { body } = await get('/health').expect(503);
    expect(Object.keys(body.error)).toEqual([one.away]);
    expect(body.error[one.away]).toMatchObject({ status: 'down', message: expect.stringMatching(/./) });
    expect(Object.keys(body.info)).toEqual(both.filter((name) => name !== one.away));

    await one.start();
    await until(async () => (await get('/health')).status === 200);
    await send('/accounts', { owner: 'Ada', balance: 1 }).expect(201);
  });
});
