import { expect, it, jest } from '@jest/globals';
import ts from 'typescript';
import { TestLockService } from 'nest-redis-lock/testing';
import { codeBlocks } from './code-blocks.js';

it('the abort path of docs/guides/testing.md works as the page says', async () => {
  const block = codeBlocks('docs/guides/testing.md').find(({ code }) => code.includes('class Import'))!;
  const { outputText } = ts.transpileModule(block.code, {
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 },
  });
  const log = jest.fn();
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- the page's own code
  const run = new Function('TestLockService', 'console', `return (async () => { ${outputText} })()`) as (
    ...given: unknown[]
  ) => Promise<void>;
  await run(TestLockService, { log });

  expect(log.mock.calls).toEqual([['LOCK_LOST', []]]);
  expect(block.code).toContain('// LOCK_LOST []');
});
