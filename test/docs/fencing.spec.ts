import { PGlite } from '@electric-sql/pglite';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { Redis } from 'ioredis';
import type { ClientBase, Pool } from 'pg';
import ts from 'typescript';
import { withRedis } from '../support/redis/with-redis.js';
import { codeBlocks } from './code-blocks.js';

// The embedded Postgres takes seconds to start on a small machine.
jest.setTimeout(60_000);

const PAGE = 'docs/fencing.md';

interface PostgresRecipe {
  readonly FencedAccounts: new (pool: Pool) => {
    read(id: number, fence: number): Promise<number | undefined>;
    write(id: number, balance: number, fence: number): Promise<boolean>;
    writeOrInsert(id: number, balance: number, fence: number): Promise<boolean>;
  };
  readonly enterTransaction: (client: ClientBase, key: string, fence: number) => Promise<void>;
}

interface RedisRecipe {
  readonly writeFenced: (redis: Redis, key: string, value: string, fence: number) => Promise<boolean>;
}

/** What the code block exports that has this text in it. */
async function recipe<T>(text: string): Promise<T> {
  const block = codeBlocks(PAGE).find(({ code }) => code.includes(text));
  const { outputText } = ts.transpileModule(block!.code, {
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 },
  });
  return (await import(`data:text/javascript,${encodeURIComponent(outputText)}`)) as T;
}

/** As large as fences are: they must not lose their last digits on the way. */
const FENCE = Date.now() * 1000;
const [OLDER, SAME, NEWER] = [FENCE - 1, FENCE, FENCE + 1];

describe('The recipe for Redis', () => {
  let redis: Redis;
  withRedis((one) => ({ redis } = one));

  it('the Redis recipe refuses a smaller fence, and accepts an equal and a larger one', async () => {
    const { writeFenced } = await recipe<RedisRecipe>('writeFenced');

    expect(await writeFenced(redis, 'report', 'first', FENCE)).toBe(true);
    expect(await writeFenced(redis, 'report', 'stale', OLDER)).toBe(false);
    expect(await redis.hget('report', 'value')).toBe('first');
    expect(await writeFenced(redis, 'report', 'again', SAME)).toBe(true);
    expect(await writeFenced(redis, 'report', 'newer', NEWER)).toBe(true);
    expect(await redis.hgetall('report')).toEqual({ fence: String(NEWER), value: 'newer' });
  });
});

describe('The recipe for PostgreSQL', () => {
  let database: PGlite;
  let accounts: InstanceType<PostgresRecipe['FencedAccounts']>;
  let enterTransaction: PostgresRecipe['enterTransaction'];

  beforeAll(async () => {
    database = new PGlite();
    await database.exec('CREATE TABLE accounts (id integer PRIMARY KEY, balance bigint NOT NULL)');
    await database.exec(codeBlocks(PAGE, 'sql')[0]!.code);
    const postgres = await recipe<PostgresRecipe>('FencedAccounts');
    accounts = new postgres.FencedAccounts(database as unknown as Pool);
    ({ enterTransaction } = postgres);
  });

  afterAll(() => database.close());

  it('the PostgreSQL recipe refuses to write with a smaller fence, and accepts an equal and a larger one', async () => {
    await database.query('INSERT INTO accounts (id, balance) VALUES (1, 1000)');

    expect(await accounts.write(1, 900, FENCE)).toBe(true);
    expect(await accounts.write(1, 1, OLDER)).toBe(false);
    expect(await accounts.write(1, 800, SAME)).toBe(true);
    expect(await accounts.read(1, SAME)).toBe(800);
    expect(await accounts.write(1, 700, NEWER)).toBe(true);
    expect(await accounts.read(1, SAME)).toBeUndefined();
  });

  it('a read with the PostgreSQL recipe locks out an older holder', async () => {
    await database.query('INSERT INTO accounts (id, balance) VALUES (2, 1000)');

    expect(await accounts.read(2, NEWER)).toBe(1000);
    expect(await accounts.write(2, 1, FENCE)).toBe(false);
  });

  it('the PostgreSQL recipe inserts a row, and refuses a smaller fence on it', async () => {
    expect(await accounts.writeOrInsert(3, 100, FENCE)).toBe(true);
    expect(await accounts.writeOrInsert(3, 1, OLDER)).toBe(false);
    expect(await accounts.writeOrInsert(3, 200, SAME)).toBe(true);
    expect(await accounts.read(3, NEWER)).toBe(200);
  });

  it('the PostgreSQL recipe lets only the newest holder into a transaction', async () => {
    const enter = (fence: number) => enterTransaction(database as unknown as ClientBase, 'report', fence);

    await enter(FENCE);
    await enter(SAME);
    await enter(NEWER);
    await expect(enter(FENCE)).rejects.toThrow('A newer holder of report has been there.');
  });
});
