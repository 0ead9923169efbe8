import { PGLiteSocketServer } from '@electric-sql/pglite-socket';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import pg from 'pg';
import { SharedPglite } from '../../sample-app/dev/processes/shared-pglite.js';

// The embedded Postgres takes seconds to start on a small machine.
jest.setTimeout(20_000);

const database = new SharedPglite();
const server = new PGLiteSocketServer({ db: database, host: '127.0.0.1', port: 0, maxConnections: 100 });
let pools: pg.Pool[] = [];

beforeAll(async () => {
  await server.start();
  const connectionString = `postgres://postgres:postgres@${server.getServerConn()}/postgres`;
  pools = Array.from({ length: 4 }, () => new pg.Pool({ connectionString, max: 4 }));
});

afterAll(async () => {
  await Promise.all(pools.map((pool) => pool.end()));
  await server.stop();
  await database.close();
});

it('the shared database answers each client the query it sent, however they interleave', async () => {
  const turns = Array.from({ length: 200 }, (_, turn) => turn);

  const answers = await Promise.all(
    turns.map((turn) => {
      const pool = pools[turn % pools.length]!;
      return turn % 3 ? askOne(pool, turn) : inTransaction(pool, (client) => askTwo(client, turn));
    }),
  );

  expect(answers).toEqual(turns);
});

it('the shared database goes on for the others when a client fails, or goes in a transaction', async () => {
  const [first, second] = pools as [pg.Pool, pg.Pool];
  await first.query('create table notes (id int)');
  const client = await first.connect();
  client.on('error', () => {});
  await client.query('begin');
  await client.query('insert into notes values ($1)', [1]);

  const count = second.query('select count(*)::int as count from notes');
  client.release(true);

  await expect(second.query('select $1::int / 0', [1])).rejects.toThrow('division by zero');
  expect((await count).rows).toEqual([{ count: 0 }]);
});

type Client = Pick<pg.PoolClient, 'query'>;

// Two statements with different parameters: mixed up, they fail or give the wrong answer.
async function askOne(client: Client, turn: number): Promise<number> {
  const { rows } = await client.query('select $1::int as turn', [turn]);
  return rows[0].turn;
}

async function askTwo(client: Client, turn: number): Promise<number> {
  const { rows } = await client.query('select $1::text as other, $2::int as turn', ['x', turn]);
  return rows[0].turn;
}

// While one is in a transaction the others queue up, and then they all go on at once.
async function inTransaction<T>(pool: pg.Pool, work: (client: Client) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query('begin');
    const result = await work(client);
    await client.query('commit');
    return result;
  } finally {
    client.release();
  }
}
