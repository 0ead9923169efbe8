import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';
import * as operators from 'rxjs/operators';

const LIB = fileURLToPath(new URL('../../lib', import.meta.url));

const { peerDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  readonly peerDependencies: Record<'rxjs', string>;
};

/** The names that the files of lib/ import from 'rxjs' itself, types aside. */
function importedFromRxjs(): string[] {
  return readdirSync(LIB, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => [...readFileSync(join(LIB, file), 'utf8').matchAll(/^import \{([^}]*)\} from 'rxjs';/gm)])
    .flatMap(([, names]) => names!.split(',').map((name) => name.trim()))
    .filter((name) => name !== '' && !name.startsWith('type '));
}

it("the lowest rxjs that peerDependencies allow has the operators that the library imports from 'rxjs'", () => {
  const imported = importedFromRxjs().filter((name) => name in operators);
  expect(imported).not.toEqual([]);
  // From 7.2 on, 'rxjs' itself exports the operators.
  const [, minor] = /^\^7\.(\d+)\.0$/.exec(peerDependencies.rxjs) ?? [];
  expect(Number(minor)).toBeGreaterThanOrEqual(2);
});
