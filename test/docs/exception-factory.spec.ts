import { expect, it } from '@jest/globals';
import * as common from '@nestjs/common';
import { type INestApplication, Logger, Param, Post, type Type } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import * as library from 'nest-redis-lock';
import { LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import request from 'supertest';
import ts from 'typescript';
import { startApp } from '../nest/http-app.js';
import { codeBlocks } from './code-blocks.js';

const BLOCK = codeBlocks('docs/reference/errors.md').find(({ code }) => code.includes('exceptionFactory'))!;

/** The module of the page, as an app compiles it, with locks in memory. */
function locksModule(): Type {
  const compilerOptions = {
    module: ts.ModuleKind.CommonJS,
    target: ts.ScriptTarget.ES2022,
    experimentalDecorators: true,
  };
  const { outputText } = ts.transpileModule(BLOCK.code, { compilerOptions });
  const modules: Record<string, unknown> = {
    '@nestjs/common': common,
    'nest-redis-lock': { ...library, RedisLockModule: LockTestingModule },
  };
  const exports = {};
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- the page's own code
  const run = new Function('require', 'exports', outputText) as (
    require: (name: string) => unknown,
    exports: object,
  ) => void;
  run((name) => modules[name], exports);
  return (exports as { LocksModule: Type }).LocksModule;
}

@common.Controller('accounts')
class Accounts {
  @Post(':id/withdraw')
  @WithLock('account:<id>', { wait: 0 })
  async withdraw(@Param('id') id: string) {
    return id;
  }
}

it('the exceptionFactory of docs/reference/errors.md sends a 423', async () => {
  Logger.overrideLogger(false);
  const app: INestApplication = await startApp(() => new ExpressAdapter(), {
    imports: [locksModule()],
    controllers: [Accounts],
  });
  const held = await app.get(LockService).lock('account:42');
  const { status, text } = await request(app.getHttpServer()).post('/accounts/42/withdraw');
  expect(BLOCK.code).toContain(`// POST /accounts/42/withdraw: ${status} ${text}\n`);
  expect(status).toBe(423);
  await held.unlock();
  await app.close();
});
