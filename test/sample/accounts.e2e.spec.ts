import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { Redis } from 'ioredis';
import pg from 'pg';
import request from 'supertest';
import { startRedis } from '../support/redis/redis-server.js';
import { SampleStack } from './sample-stack.js';

// The embedded Postgres takes seconds to start on a small machine.
jest.setTimeout(60_000);

let stack: SampleStack;
let api: string;

beforeAll(async () => {
  stack = await SampleStack.start();
  api = await stack.startApp();
});

afterAll(() => stack.stop());

const post = (path: string, body: object, app = api) => request(app).post(path).send(body);

async function openAccount(balance = 1_000): Promise<string> {
  const { body } = await post('/accounts', { owner: 'Ada', balance }).expect(201);
  return `/accounts/${body.id}`;
}

async function balanceOf(account: string): Promise<number> {
  const { body } = await request(api).get(account).expect(200);
  return body.balance;
}

const idOf = (account: string) => Number(account.split('/').pop());

describe('accounts', () => {
  it('the sample creates an account and shows it', async () => {
    const { body: created } = await post('/accounts', { owner: 'Ada', balance: 1_000 }).expect(201);
    const { body: shown } = await request(api).get(`/accounts/${created.id}`).expect(200);

    expect(created).toEqual({ id: expect.any(Number), owner: 'Ada', balance: 1_000 });
    expect(shown).toEqual(created);
  });

  it('the sample deposits and withdraws, and answers with the new balance', async () => {
    const account = await openAccount(1_000);

    const { body: richer } = await post(`${account}/deposit`, { amount: 50 }).expect(200);
    const { body: poorer } = await post(`${account}/withdraw`, { amount: 350 }).expect(200);

    expect([richer.balance, poorer.balance, await balanceOf(account)]).toEqual([1_050, 700, 700]);
  });

  it.each([
    ['an empty body', {}, ['owner must be a string', 'balance must be an integer number']],
    ['a body that is a list', [], []],
    ['an unknown field', { owner: 'Ada', balance: 1, admin: true }, ['property admin should not exist']],
    ['a blank owner', { owner: ' ', balance: 1 }, ['owner must be a name, without control characters']],
    ['an owner with a zero byte', { owner: 'A\0', balance: 1 }, ['owner must be a name, without control characters']],
    ['a negative balance', { owner: 'Ada', balance: -1 }, ['balance must not be less than 0']],
    ['a fraction', { owner: 'Ada', balance: 0.5 }, ['balance must be an integer number']],
    ['a balance as text', { owner: 'Ada', balance: '1' }, ['balance must be an integer number']],
    [
      'more than can be counted',
      { owner: 'Ada', balance: 2 ** 53 },
      ['balance must not be greater than 9007199254740991'],
    ],
  ])('the sample refuses to create an account from %s, with the reasons', async (_, body, reasons) => {
    const { body: answer } = await post('/accounts', body).expect(400);
    expect(answer.message).toEqual(expect.arrayContaining(reasons));
  });

  it.each(['01', '1.0', '+1', '-1', '0', '1e2', '%201', 'abc', '2147483648', '99999999999999999999'])(
    'the sample knows one spelling per account, and %j is none',
    async (id) => {
      const { body } = await request(api).get(`/accounts/${id}`).expect(400);
      expect(body.message).toEqual(['id must be a whole number from 1 to 2147483647']);
    },
  );

  it.each([-5, 0, 1.5, '5', null, 2 ** 53])('the sample refuses to withdraw %j', async (amount) => {
    const account = await openAccount();
    const { body } = await post(`${account}/withdraw`, { amount }).expect(400);
    expect(body.message).toEqual(expect.arrayContaining([expect.stringContaining('amount must')]));
  });

  it('the sample answers 404 for an account that does not exist', async () => {
    await request(api).get('/accounts/2147483647').expect(404);
    await post('/accounts/2147483647/deposit', { amount: 1 }).expect(404);
    await post('/accounts/2147483647/withdraw', { amount: 1 }).expect(404);
  });

  it('the sample answers 422 and changes nothing when the funds are insufficient', async () => {
    const account = await openAccount(100);

    const { body } = await post(`${account}/withdraw`, { amount: 101 }).expect(422);

    expect(body.message).toContain('Insufficient funds');
    expect(await balanceOf(account)).toBe(100);
  });

  it('the sample answers 422 when an account would hold more than can be counted', async () => {
    const account = await openAccount(Number.MAX_SAFE_INTEGER);
    await post(`${account}/deposit`, { amount: 1 }).expect(422);
    expect(await balanceOf(account)).toBe(Number.MAX_SAFE_INTEGER);
  });
});

describe('transfers', () => {
  it('a transfer moves money between two accounts', async () => {
    const [from, to] = [await openAccount(1_000), await openAccount(0)];

    const { body } = await post('/transfers', { from: idOf(from), to: idOf(to), amount: 400 }).expect(200);

    expect([body.from.balance, body.to.balance]).toEqual([600, 400]);
    expect([await balanceOf(from), await balanceOf(to)]).toEqual([600, 400]);
  });

  it('a transfer changes neither account when the funds are insufficient', async () => {
    const [from, to] = [await openAccount(10), await openAccount(10)];
    await post('/transfers', { from: idOf(from), to: idOf(to), amount: 11 }).expect(422);
    expect([await balanceOf(from), await balanceOf(to)]).toEqual([10, 10]);
  });

  it('a transfer from an account to itself is refused', async () => {
    const id = idOf(await openAccount());
    const { body } = await post('/transfers', { from: id, to: id, amount: 1 }).expect(400);
    expect(body.message).toEqual(['to must not be equal to from']);
  });

  it('a transfer is answered with 404 when either account does not exist', async () => {
    const id = idOf(await openAccount());
    await post('/transfers', { from: id, to: 2_147_483_647, amount: 1 }).expect(404);
    await post('/transfers', { from: 2_147_483_647, to: id, amount: 1 }).expect(404);
  });

  it('transfers that cross keep every unit', async () => {
    const [a, b] = [await openAccount(1_000), await openAccount(1_000)];
    const crossing = Array.from({ length: 10 }, (_, turn) => {
      const [from, to] = turn % 2 ? [a, b] : [b, a];
      return post('/transfers', { from: idOf(from), to: idOf(to), amount: turn + 1 }).expect(200);
    });

    await Promise.all(crossing);

    // b pays 1 + 3 + 5 + 7 + 9 and a pays 2 + 4 + 6 + 8 + 10.
    expect([await balanceOf(a), await balanceOf(b)]).toEqual([995, 1_005]);
  });
});

describe('the lock', () => {
  it('the lock makes 1000 - 200 - 300 = 500, in two apps at once', async () => {
    const otherApi = await stack.startApp();
    const account = await openAccount(1_000);

    await Promise.all([
      post(`${account}/withdraw`, { amount: 200 }).expect(200),
      post(`${account}/withdraw`, { amount: 300 }, otherApi).expect(200),
    ]);

    expect(await balanceOf(account)).toBe(500);
  });

  it('the lock is what makes it so: without it, one of two withdrawals is lost', async () => {
    const unsafeApi = await stack.startApp({ demoUnsafe: true }, bothHaveRead());
    const account = await openAccount(1_000);

    await Promise.all([
      post(`${account}/withdraw?unsafe=true`, { amount: 200 }, unsafeApi).expect(200),
      post(`${account}/withdraw?unsafe=true`, { amount: 300 }, unsafeApi).expect(200),
    ]);

    expect([700, 800]).toContain(await balanceOf(account));
  });

  it('the lock cannot be left out unless the demonstration is allowed', async () => {
    const account = await openAccount();

    const { body } = await post(`${account}/withdraw?unsafe=true`, { amount: 1 }).expect(400);
    await post(`${account}/withdraw?unsafe=yes`, { amount: 1 }).expect(400);

    expect(body.message).toEqual([expect.stringContaining('DEMO_UNSAFE=1')]);
    expect(await balanceOf(account)).toBe(1_000);
  });

  it('the sample answers 409 when somebody else keeps the account', async () => {
    const impatientApi = await stack.startApp({ lockWait: '50ms' });
    const account = await openAccount();
    const somebodyElse = new Redis(stack.redis.url);
    await somebodyElse.set(`lock:account:${idOf(account)}`, 'mine', 'PX', 60_000);

    const { body } = await post(`${account}/withdraw`, { amount: 1 }, impatientApi).expect(409);
    await post('/transfers', { from: idOf(account), to: idOf(await openAccount()), amount: 1 }, impatientApi).expect(
      409,
    );
    somebodyElse.disconnect();

    expect(body).toMatchObject({ statusCode: 409, code: 'LOCK_TIMEOUT' });
    expect(await balanceOf(account)).toBe(1_000);
  });

  it('the sample answers 503 and changes neither account when a newer holder has written to one', async () => {
    const [from, to] = [await openAccount(1_000), await openAccount(0)];
    const newerApi = await stack.startApp({}, { approve: () => writeWithFence(idOf(to), Number.MAX_SAFE_INTEGER) });

    const { body } = await post('/transfers', { from: idOf(from), to: idOf(to), amount: 400 }, newerApi).expect(503);

    expect(body).toMatchObject({ statusCode: 503, code: 'LOCK_LOST', retryable: false });
    expect([await balanceOf(from), await balanceOf(to)]).toEqual([1_000, 0]);
  });

  it('the sample answers 503 when Redis is gone, and what needs no lock goes on', async () => {
    const doomedRedis = await startRedis();
    const doomedApi = await stack.startApp({ redisUrl: doomedRedis.url });
    const account = await openAccount();
    await doomedRedis.stop();

    const { body } = await post(`${account}/withdraw`, { amount: 1 }, doomedApi).expect(503);

    expect(body).toMatchObject({ statusCode: 503, code: 'LOCK_UNAVAILABLE' });
    await request(doomedApi)
      .get(account)
      .expect(200, { id: idOf(account), owner: 'Ada', balance: 1_000 });
  });
});

describe('the documentation', () => {
  it('the documentation of the sample lists every route, with the errors that a lock can cause', async () => {
    const { body } = await request(api).get('/docs-json').expect(200);

    expect(Object.keys(body.paths)).toEqual([
      '/accounts',
      '/accounts/{id}',
      '/accounts/{id}/deposit',
      '/accounts/{id}/withdraw',
      '/transfers',
      '/stock/{sku}',
      '/stock/{sku}/buy',
      '/orders',
      '/orders/{serial}',
      '/orders/{serial}/charges',
      '/interest/runs',
      '/interest/accounts/{id}',
      '/report',
      '/payouts',
      '/health',
    ]);
    const locked = ['/accounts/{id}/deposit', '/accounts/{id}/withdraw', '/transfers', '/stock/{sku}/buy', '/orders'];
    for (const path of [...locked, '/interest/runs', '/payouts']) {
      const { responses } = body.paths[path].post;
      expect(Object.keys(responses)).toEqual(expect.arrayContaining(['409', '503']));
      for (const status of [409, 503]) expect(Object.keys(responses[status].headers)).toEqual(['Retry-After']);
    }
    for (const path of locked) expect(Object.keys(body.paths[path].post.responses)).toContain('422');
  });

  it('the sample says at /health that locks can be acquired', async () => {
    const { body } = await request(api).get('/health').expect(200);
    expect(body).toMatchObject({ status: 'ok', info: { locks: { status: 'up' }, database: { status: 'up' } } });
  });

  it('the sample has its documentation at /docs', async () => {
    await request(api).get('/docs').expect(200).expect('content-type', /html/);
  });
});

/** Does what a newer holder does, as far as the database can tell. */
async function writeWithFence(account: number, fence: number): Promise<void> {
  const client = new pg.Client(stack.databaseUrl);
  await client.connect();
  await client.query('update accounts set fence = $2 where id = $1', [account, fence]);
  await client.end();
}

/** A fraud check that lets the first two go on together, when both have read the balance. */
function bothHaveRead() {
  let readers = 0;
  let letGo = () => {};
  const both = new Promise<void>((resolve) => (letGo = resolve));
  return {
    approve: async () => {
      if (++readers === 2) letGo();
      await both;
    },
  };
}
