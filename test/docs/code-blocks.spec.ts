import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import { codeBlocks, type CodeBlock } from './code-blocks.js';

const DOCUMENTS = [
  'README.md',
  ...readdirSync('docs', { recursive: true, encoding: 'utf8' }).map((file) => join('docs', file)),
].filter((file) => file.endsWith('.md'));

/** Declares what an example may use without an import. */
const PRELUDE = `
import { Injectable, Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Cluster, Redis } from 'ioredis';
import {
  CurrentLock, getLockServiceToken, InjectLocks, lockKey, LockService, RedisLockModule, WithLock, type Lock,
} from 'nest-redis-lock';
import { LockTestingModule, MemoryLockStore, TestLockService } from 'nest-redis-lock/testing';
`;

/** Declares classes of an app that examples use but do not show. */
const APP = {
  AccountRepository:
    'declare class AccountRepository { ' +
    'balanceOf(id: string): Promise<number>; setBalance(id: string, balance: number): Promise<void> }',
  AccountService: 'declare class AccountService {}',
  AppModule: 'declare class AppModule {}',
  Database: `
    declare class Transaction { run(sql: string, values: unknown[]): Promise<void> }
    declare class Database { transaction(work: (transaction: Transaction) => Promise<void>): Promise<void> }`,
  OrderDto: 'interface OrderDto { readonly items: readonly { readonly sku: string }[] }',
};

/** The files of Nest's project template, which the README adds to. */
const TEMPLATE = ['app.controller.ts', 'app.service.ts'].map((file) => ({
  name: 'README.md:1',
  code: `// src/${file}\n${readFileSync(join('test/consumers/template', file), 'utf8')}`,
}));

/**
 * Makes a file of a block. A block that imports from the package is complete. So is a block that begins with its file
 * name, such as `// src/app.module.ts`: other blocks of its page may import it. Any other block gets the prelude.
 */
function asFile({ name, code }: CodeBlock): { file: string; text: string } {
  const folder = join(process.cwd(), 'test', 'docs', name.replace(/:.*/, '').replace(/\W/g, '-'));
  const named = /^\/\/ (src\/\S+\.ts)\n/.exec(code)?.[1];
  const file = join(folder, named ?? `${name.replace(/\W/g, '-')}.ts`);
  if (named || /from 'nest-redis-lock/.test(code)) return { file, text: code };
  const app = Object.entries(APP).filter(([name]) => !code.includes(`class ${name} `));
  return { file, text: PRELUDE + app.map(([, declaration]) => declaration).join('\n') + '\n' + code };
}

/** Files on the disk, for one compilation after the other. */
const PARSED = new Map<string, ts.SourceFile | undefined>();

/** Compiles the blocks with the types of the built package, and returns the errors. */
function problems(blocks: readonly CodeBlock[]): string[] {
  const files = new Map(blocks.map((block) => [asFile(block).file, { name: block.name, text: asFile(block).text }]));
  const folders = new Set([...files.keys()].flatMap((file) => [dirname(file), dirname(dirname(file))]));
  const { config } = ts.readConfigFile('tsconfig.json', (file) => readFileSync(file, 'utf8')) as { config: object };
  const parsed = ts.parseJsonConfigFileContent(
    { ...config, include: [], files: ['dist/index.d.ts'] },
    ts.sys,
    process.cwd(),
  );
  const paths = { 'nest-redis-lock': ['./dist/index.d.ts'], 'nest-redis-lock/testing': ['./dist/testing/index.d.ts'] };
  const options = { ...parsed.options, paths, noUnusedLocals: false, noUnusedParameters: false };
  const host = ts.createCompilerHost(options);
  const disk = { ...host };
  host.getSourceFile = (file, target, ...rest) => {
    const text = files.get(file)?.text;
    if (text !== undefined) return ts.createSourceFile(file, text, target);
    if (!PARSED.has(file)) PARSED.set(file, disk.getSourceFile(file, target, ...rest));
    return PARSED.get(file);
  };
  host.fileExists = (file) => files.has(file) || disk.fileExists(file);
  host.directoryExists = (folder) => folders.has(folder) || disk.directoryExists!(folder);
  host.readFile = (file) => files.get(file)?.text ?? disk.readFile(file);
  const program = ts.createProgram([...files.keys()], options, host);
  return ts.getPreEmitDiagnostics(program).map(({ file, messageText }) => {
    const where = file ? (files.get(file.fileName)?.name ?? file.fileName) : 'options';
    return `${where}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
  });
}

describe('The examples in the README and in docs/', () => {
  it('all examples of the docs compile', () => {
    const blocks = [...DOCUMENTS.flatMap((file) => codeBlocks(file)), ...TEMPLATE];
    expect(blocks.length).toBeGreaterThanOrEqual(8);
    expect(problems(blocks)).toEqual([]);
  }, 60_000);

  it('the check of the examples finds a type error', () => {
    expect(problems([{ name: 'bad.md:1', code: 'export const locks: LockService = 42;' }])).toEqual([
      expect.stringMatching(/^bad\.md:1: Type 'number'/),
    ]);
    const one = `// src/one.ts\nimport { Lock } from 'nest-redis-lock';\nexport const one = 1;`;
    const two =
      `// src/two.ts\nimport { WithLock } from 'nest-redis-lock';\n` +
      `import { one } from './one.js';\nWithLock(one);`;
    expect(
      problems([
        { name: 'bad.md:1', code: one },
        { name: 'bad.md:5', code: two },
      ]),
    ).toEqual([expect.stringMatching(/^bad\.md:5: No overload/)]);
  }, 60_000);

  it('every TypeScript example is marked as ts, so that none goes unchecked', () => {
    const unmarked = DOCUMENTS.filter((file) =>
      /^[ \t]+```ts|^[ \t]*```(?:typescript|tsx|js|javascript|mjs)\b/m.test(readFileSync(file, 'utf8')),
    );
    expect(unmarked).toEqual([]);
  });
});
