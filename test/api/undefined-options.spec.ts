import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import ts from 'typescript';

/** `Refused`: the names of the options that must not be undefined in an app with `exactOptionalPropertyTypes`. */
const REFUSED = `
type Refused<Options> = {
  [name in keyof Options]-?: { [one in name]: undefined } extends Pick<Options, name> ? never : name;
}[keyof Options];
`;

/** Options, and those of them that docs/reference/options.md refuses when they are undefined. */
const OPTIONS = [
  ['main.RedisLockModuleOptions', "'connection' | 'store' | 'keyPrefix' | 'name'"],
  ["Exclude<main.RedisLockModuleOptions['durability'], 'none' | undefined>", "'replicas'"],
  ['main.LockOptions', 'never'],
  ['main.WithLockOptions', 'never'],
  ['main.WithLockDecoratorOptions', "'module'"],
  ['main.ForceUnlockOptions', "'token'"],
  ['main.ListOptions', 'never'],
  ['testing.LockTestingModuleOptions', "'store' | 'keyPrefix' | 'name'"],
  ['testing.LockSituation', 'never'],
  ['opentelemetry.LockOpenTelemetryOptions', 'never'],
  ['page.LockPageModuleOptions', "'module'"],
  ['prometheus.LockPrometheusOptions', 'never'],
];

/** Compiles a text beside this file with `exactOptionalPropertyTypes`, and returns its errors. */
function problems(text: string): string[] {
  const { config } = ts.readConfigFile('tsconfig.json', (file) => readFileSync(file, 'utf8')) as { config: object };
  const parsed = ts.parseJsonConfigFileContent({ ...config, include: [], files: ['.'] }, ts.sys, process.cwd());
  const options = { ...parsed.options, exactOptionalPropertyTypes: true, noUnusedLocals: false };
  const name = join(import.meta.dirname, 'exact.ts');
  const host = ts.createCompilerHost(options);
  const disk = { ...host };
  host.getSourceFile = (file, target, ...rest) =>
    file === name ? ts.createSourceFile(file, text, target) : disk.getSourceFile(file, target, ...rest);
  const program = ts.createProgram([name], options, host);
  return program
    .getSemanticDiagnostics(program.getSourceFile(name))
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
}

it('an option may be undefined with exactOptionalPropertyTypes, unless it says where a lock lives, or whose it is', () => {
  const checks = OPTIONS.map(
    ([options, refused], at) => `
      export const all${at} = (name: Refused<${options}>): ${refused} => name;
      export const only${at} = (name: ${refused}): Refused<${options}> => name;`,
  );
  const calls = `
    declare const config: { wait: main.Duration | undefined };
    export class Jobs {
      @main.WithLock('job', { wait: config.wait, onTimeout: undefined, scope: undefined })
      async run() {}
    }
    export const all = (locks: main.LockService) => locks.withLock('a', () => 1, { wait: config.wait });
    export const module = main.RedisLockModule.forRootAsync({ useFactory: () => config, isGlobal: undefined });`;
  const imports = `
    import * as main from 'nest-redis-lock';
    import type * as opentelemetry from 'nest-redis-lock/opentelemetry';
    import type * as page from 'nest-redis-lock/page';
    import type * as prometheus from 'nest-redis-lock/prometheus';
    import type * as testing from 'nest-redis-lock/testing';`;
  expect(problems(imports + REFUSED + checks.join('') + calls)).toEqual([]);
}, 60_000);
