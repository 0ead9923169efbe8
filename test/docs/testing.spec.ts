import { afterEach, expect, it, jest } from '@jest/globals';
import { Controller, HttpCode, type INestApplication, Module, Param, Post } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import request from 'supertest';
import ts from 'typescript';
import { LockService, type LockUnavailableError, RedisLockModule, WithLock } from 'nest-redis-lock';
import { MemoryLockStore, TestLockService } from 'nest-redis-lock/testing';
import { codeBlocks } from './code-blocks.js';

/** Runs the block of docs/guides/testing.md that contains this, and returns the value of an expression behind it. */
async function runBlock<Value>(containing: string, given: object, result: string): Promise<Value> {
  const { code } = codeBlocks('docs/guides/testing.md').find((block) => block.code.includes(containing))!;
  const { outputText } = ts.transpileModule(code.replace(/^import .*/gm, ''), {
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 },
  });
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- the page's own code
  const run = new Function(...Object.keys(given), `return (async () => { ${outputText}; return ${result} })()`) as (
    ...given: unknown[]
  ) => Promise<Value>;
  return run(...Object.values(given));
}

@Controller('accounts')
class Accounts {
  @Post(':id/withdraw')
  @HttpCode(200)
  @WithLock('account:<id>')
  async withdraw(@Param('id') id: string) {
    return id;
  }
}

@Module({ imports: [RedisLockModule.forRoot()], controllers: [Accounts] })
class AppModule {}

const open: INestApplication[] = [];

afterEach(async () => {
  for (const app of open.splice(0)) await app.close();
});

it('the abort path of docs/guides/testing.md works as the page says', async () => {
  const log = jest.fn();
  await runBlock('// LOCK_LOST []', { TestLockService, console: { log } }, 'undefined');
  expect(log.mock.calls).toEqual([['LOCK_LOST', []]]);
});

it('a TestLockService serves one app; several apps, one after the other, can share a store', async () => {
  const [store, shared] = [new MemoryLockStore(), new TestLockService()];
  const answers: unknown[] = [];
  for (const locks of [shared, shared, new TestLockService({ store }), new TestLockService({ store })]) {
    const module = Test.createTestingModule({ imports: [AppModule] });
    const app = await module.overrideProvider(LockService).useValue(locks).compile();
    const call = app.get(LockService).withLock('a', () => 'ran');
    answers.push(await call.catch((error: LockUnavailableError) => error.detail));
    await app.close();
  }
  expect(answers).toEqual(['ran', expect.stringContaining('This app is shutting down'), 'ran', 'ran']);
});

/** How long a test may take in Jest and Vitest, unless it says otherwise. */
const USUAL_TEST_MS = 5_000;

it(
  'a request waits for a key that a test holds, for less than a test may take',
  async () => {
    const given = { Test, AppModule, LockService, TestLockService, request };
    const { app, status } = await runBlock<{ app: INestApplication; status: number }>(
      '// 409, when its wait is over',
      given,
      '{ app, status }',
    );
    open.push(app);
    expect(status).toBe(409);
  },
  USUAL_TEST_MS,
);
