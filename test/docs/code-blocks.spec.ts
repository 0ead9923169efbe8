import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import { codeBlocks, type CodeBlock } from './code-blocks.js';

const DOCUMENTS = ['README.md', ...readdirSync('docs', { recursive: true, encoding: 'utf8' }).map((file) => join('docs', file))].filter((file) => file.endsWith('.md'));

/** What an example may use without saying where it is from. */
const PRELUDE = `
import { Injectable, Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Redis } from 'ioredis';
import { CurrentLock, InjectLocks, LockService, RedisLockModule, WithLock, type Lock } from 'nest-redis-lock';
import { LockTestingModule, MemoryLockStore } from 'nest-redis-lock/testing';
`;

/** The app's own classes that examples speak of, and do not show. */
const APP = {
  AccountRepository: 'declare class AccountRepository { balanceOf(id: string): Promise<number>; setBalance(id: string, balance: number): Promise<void> }',
  AccountService: 'declare class AccountService {}',
  OrderDto: 'interface OrderDto { readonly items: readonly { readonly sku: string }[] }',
};

function problems(blocks: readonly CodeBlock[]): string[] {
  const files = new Map(blocks.map(({ name, code }) => [join(process.cwd(), 'test', 'docs', `${name.replace(/\W/g, '-')}.ts`), { name, code }]));
  const { config } = ts.readConfigFile('tsconfig.json', (file) => readFileSync(file, 'utf8')) as { config: object };
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [], files: ['lib/index.ts'] }, ts.sys, process.cwd());
  const host = ts.createCompilerHost({ ...options, noUnusedLocals: false, noUnusedParameters: false });
  const disk = { ...host };
  const source = (file: string) => {
    const code = files.get(file)?.code;
    if (code === undefined) return undefined;
    const app = Object.entries(APP).filter(([name]) => !code.includes(`class ${name} `));
    return PRELUDE + app.map(([, declaration]) => declaration).join('\n') + '\n' + code;
  };
  host.getSourceFile = (file, target, ...rest) => {
    const text = source(file);
    return text === undefined ? disk.getSourceFile(file, target, ...rest) : ts.createSourceFile(file, text, target);
  };
  host.fileExists = (file) => files.has(file) || disk.fileExists(file);
  host.readFile = (file) => source(file) ?? disk.readFile(file);
  const program = ts.createProgram([...files.keys()], { ...options, noUnusedLocals: false, noUnusedParameters: false }, host);
  return ts.getPreEmitDiagnostics(program).map(({ file, messageText }) => {
    const where = file ? (files.get(file.fileName)?.name ?? file.fileName) : 'options';
    return `${where}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
  });
}

describe('The examples in the README and in docs/', () => {
  it('compile', () => {
    const blocks = DOCUMENTS.flatMap((file) => codeBlocks(file));
    expect(blocks.length).toBeGreaterThanOrEqual(8);
    expect(problems(blocks)).toEqual([]);
  }, 60_000);

  it('are checked by a check that fails', () => {
    expect(problems([{ name: 'bad.md:1', code: 'export const locks: LockService = 42;' }])).toEqual([expect.stringMatching(/^bad\.md:1: Type 'number'/)]);
  }, 60_000);
});
