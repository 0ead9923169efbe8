import { createRequire } from 'node:module';
import { afterEach, describe, expect, it } from '@jest/globals';
import { SetMetadata, type Type } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { transformSync } from '@swc/core';
import { LockOptionsError, LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { Observable } from 'rxjs';
import ts from 'typescript';
import { boot } from './boot.js';

const tsc =
  (target: 'ES2016' | 'ES2017' | 'ES2022', options: ts.CompilerOptions = {}) =>
  (source: string) =>
    ts.transpileModule(source, {
      compilerOptions: {
        target: ts.ScriptTarget[target],
        module: ts.ModuleKind.CommonJS,
        experimentalDecorators: true,
        emitDecoratorMetadata: true,
        ...options,
      },
    }).outputText;

const swc = (target: 'es2016' | 'es2017' | 'es2022') => (source: string) =>
  transformSync(source, {
    jsc: {
      target,
      parser: { syntax: 'typescript', decorators: true },
      transform: { legacyDecorator: true, decoratorMetadata: true },
    },
    module: { type: 'commonjs' },
  }).code;

/** Plain JavaScript: no types, so no metadata. */
const noTypes = (source: string) =>
  ts.transpileModule(source, {
    compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.CommonJS, experimentalDecorators: true },
  }).outputText;

/** Before ES2017 there are no async functions: what is `async` in the source becomes a plain function. */
const COMPILERS: [name: string, compile: (source: string) => string][] = [
  ['tsc', tsc('ES2022')],
  ['tsc for ES2016', tsc('ES2016')],
  ['swc', swc('es2022')],
  ['swc for ES2016', swc('es2016')],
  ['JavaScript', noTypes],
];

const Bluebird = class {
  then() {}
};
/** An Observable, but not of RxJS. */
const Store = class {
  subscribe() {}
  ['@@observable']() {}
};
/** Pages of an API, as an app writes it. */
const Pages = class {
  next() {}
  [Symbol.asyncIterator]() {
    return this;
  }
};
/** A cursor of a database: its `next()` returns a row. */
const Cursor = class {
  next() {}
  hasNext() {}
  async *[Symbol.asyncIterator]() {}
};
const Below: MethodDecorator = (_prototype, _name, descriptor) => {
  const method = descriptor.value as () => unknown;
  descriptor.value = (async () => method()) as typeof descriptor.value;
};

/** Puts a function that is not async in the place of a method, and returns a promise all the same. */
const Instead: MethodDecorator = (_prototype, _name, descriptor) => {
  const method = descriptor.value as () => unknown;
  descriptor.value = (() => Promise.resolve(method())) as typeof descriptor.value;
};

/** A class with this method, as the compiler makes it. */
function compiled(compile: (source: string) => string, method: string): Type {
  const scope = {
    Lock: WithLock('job'),
    Tag: SetMetadata('tag', 1),
    Below,
    Instead,
    Observable,
    Bluebird,
    Store,
    Pages,
    Cursor,
  };
  const code = compile(`class Jobs { x: any; @Lock ${method} }\nexports.Jobs = Jobs;`);
  const exports: { Jobs?: Type } = {};
  const require = createRequire(import.meta.url);
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- it is our own code, and must have our own Promise
  const define = new Function('exports', 'require', ...Object.keys(scope), code) as (...args: unknown[]) => void;
  define(exports, require, ...Object.values(scope));
  return exports.Jobs!;
}

const SYNCHRONOUS = [
  'run(): string { return this.x }',
  'run(): number { return this.x }',
  'run(): boolean { return this.x }',
  'run(): string[] { return this.x }',
  'run(): Date { return this.x }',
  'run(): Store<number> { return this.x }',
  'run(): Cursor<number> { return this.x }',
];

/** Whose source tells. */
const PLAINLY_SYNCHRONOUS = [
  'run(): void { this.x() }',
  'run() {}',
  'run() { this.x(async () => { return 1 }) }',
  'run() { if (this.x) return; this.x() }',
  'run() { return 5 }',
  'run() { return "done" }',
  'run(): any { return `${this.x}!` }',
  'run(a: number, b: number) { return a + b }',
  'run() { return !this.x }',
  'run() { return null }',
  'run() { return undefined }',
  'run() { return [this.x] }',
  'run() { return { x: this.x } }',
  'run(): unknown { return this.x ? 1 : 2 || 3 }',
  'run() { if (this.x) return 1; return 2 }',
  '*run() { yield 1 }',
  '@Tag run() { return 5 }',
];

const ASYNCHRONOUS_BY_TYPE = [
  'run(): Promise<void> { throw new Error() }',
  'run(): Observable<void> { throw new Error() }',
  'run(): Bluebird<void> { throw new Error() }',
  'run(): Pages<string> { throw new Error() }',
];

const ASYNCHRONOUS = [
  'async run() {}',
  'async run() { return 5 }',
  'async run(a = 1, { b }: any) { return a + b }',
  'async *run() { yield 1 }',
  'run(): Observable<number> { return this.x }',
  'run(): Bluebird<number> { return this.x }',
  'run(): Pages<string> { return new Pages() }',
  '@Tag async run() { return 5 }',
  '@Below run() { return 5 }',
  'run(): AsyncGenerator<number> { return this.x }',
];

/** Of which nobody knows before the call. */
const UNKNOWN = [
  'run() { return this.x() }',
  'run(): any { return this.x }',
  'run(): unknown { return this.x || 5 }',
  'run() { return this.x ? 5 : this.x() }',
  'run() { return new Promise(() => {}) }',
  'run() { return { then: this.x } }',
  'run() { return { [Symbol.asyncIterator]: this.x } }',
  'run() { return { ...this.x } }',
  'run() { if (this.x) return null; return this.x() }',
  'run(): any { throw new Error("subclasses do it") }',
  '@Instead run(): any { return { x: 1 } }',
  '@Instead run(): any { this.x }',
];

const TYPED = COMPILERS.filter(([name]) => name !== 'JavaScript');
const each = (compilers: typeof COMPILERS, methods: readonly string[]) =>
  compilers.flatMap(([name, compile]) => methods.map((method) => ({ name, compile, method })));

describe('at boot', () => {
  it.each([...each(TYPED, SYNCHRONOUS), ...each(COMPILERS, PLAINLY_SYNCHRONOUS)])(
    'the method "$method" is refused at boot ($name)',
    async ({ compile, method }) => {
      const booting = boot(compiled(compile, method));
      await expect(booting).rejects.toBeInstanceOf(LockOptionsError);
      await expect(booting).rejects.toThrow(
        /^Jobs\.run\(\) does not return a promise, an Observable or an async iterator.*\s+Potential solutions:\s+- Make it async/,
      );
    },
  );

  it.each([...each(TYPED, ASYNCHRONOUS_BY_TYPE), ...each(COMPILERS, [...ASYNCHRONOUS, ...UNKNOWN])])(
    'the method "$method" is not refused at boot ($name)',
    async ({ compile, method }) => {
      await boot(compiled(compile, method));
    },
  );
});

describe('an "async *" method that is compiled for a target before ES2018', () => {
  const OLDER: typeof COMPILERS = [
    ['tsc for ES2016', tsc('ES2016')],
    ['tsc for ES2017', tsc('ES2017')],
    ['tsc for ES2017, with tslib', tsc('ES2017', { importHelpers: true, esModuleInterop: true })],
    ['swc for ES2016', swc('es2016')],
    ['swc for ES2017', swc('es2017')],
  ];
  /** Whose values are 1 and 2, for the argument 1. */
  const GENERATORS = [
    'async *run(from: number) { yield from; yield from + 1; }',
    'run(from: number): AsyncGenerator<number> { return this.rows(from); } async *rows(from: number) { yield from; yield from + 1; }',
    'async *run({ from: start = 1 }: any = {}, ...more: any[]) { yield start; yield start + 1; }',
    '@Tag async *run() { yield 1; if (this.x) yield super.toString(); yield 2; }',
  ];

  type Run = (from?: number) => AsyncIterable<number> & Promise<number>;
  let module: TestingModule;

  afterEach(() => module.close());

  async function started(type: Type): Promise<{ readonly run: Run }> {
    const [imports, providers] = [[LockTestingModule.forRoot()], [{ provide: 'jobs', useClass: type }]];
    module = await Test.createTestingModule({ imports, providers }).compile();
    await module.init();
    return module.get<{ run: Run }>('jobs');
  }

  it.each(each(OLDER, GENERATORS))('the method "$method" holds its lock until its end ($name)', async (given) => {
    const jobs = await started(compiled(given.compile, given.method));
    const locks = module.get(LockService);
    const read = [];
    for await (const value of jobs.run(1)) read.push([value, await locks.isLocked('job')]);
    expect(read).toEqual([
      [1, true],
      [2, true],
    ]);
    expect(await locks.isLocked('job')).toBe(false);
  });

  it.each(OLDER)('a method of a promise stays one, though it has a generator inside (%s)', async (_name, compile) => {
    const inside = 'const made = async function* () { yield 1 }; for await (const one of made()) return one;';
    const jobs = await started(compiled(compile, `async run() { ${inside} }`));
    const call = jobs.run();
    expect(call).toBeInstanceOf(Promise);
    expect(await call).toBe(1);
  });
});
