import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import * as library from 'nest-redis-lock';
import {
  LockKeyError,
  LockLostError,
  LockNotWiredError,
  LockOptionsError,
  LockTimeoutError,
  LockUnavailableError,
  RedisLockModule,
  WithLock,
} from 'nest-redis-lock';
import { boot } from '../nest/boot.js';

/** Reads the rows of the first table under a heading. */
function table(file: string, heading: string): string[][] {
  const text = readFileSync(file, 'utf8').split(`${heading}\n`)[1]!;
  const rows = /(?:^\|.*\n)+/m.exec(text)![0].trim().split('\n').slice(2);
  return rows.map((row) =>
    row
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim().replaceAll('`', '')),
  );
}

const optionsUnder = (heading: string) => table('docs/reference/options.md', heading).map(([option]) => option!);

/** Reads the known options from the library's own error message. */
const known = (message: string) => /Known options: (.*)\./.exec(message)![1]!.split(', ');

async function messageOf(attempt: () => unknown): Promise<string> {
  try {
    await attempt();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('It should have failed.');
}

describe('The reference of options', () => {
  it('the reference lists all options of the module, and no others', async () => {
    const message = await messageOf(() => RedisLockModule.forRoot({ nothing: 1 } as object));
    expect(optionsUnder('## Options of the module').sort()).toEqual(known(message).sort());
  });

  it('the reference lists all options of a call and of @WithLock, and no others', async () => {
    class Jobs {
      @WithLock('job', { nothing: 1 } as object)
      async run() {}
    }
    const message = await messageOf(() => boot(Jobs));
    expect([...optionsUnder('## Options of a call'), ...optionsUnder('## Options of `@WithLock`')].sort()).toEqual(
      known(message).sort(),
    );
  });
});

describe.each(['docs/reference/errors.md', 'README.md'])('the table of errors in %s', (file) => {
  const heading = file === 'README.md' ? '## Errors' : '# Which errors are there?';
  const ERRORS = [
    new LockTimeoutError({
      keys: [],
      label: 'l',
      reason: 'held',
      waitedMs: 0,
      waitMs: 0,
      holder: undefined,
      ahead: 0,
      leaseLeftMs: undefined,
      holding: [],
      maxWaiters: 0,
    }),
    new LockUnavailableError(''),
    new LockLostError({ keys: [], label: 'l', reason: 'expired', heldMs: 0 }),
    new LockKeyError(''),
    new LockOptionsError(''),
    new LockNotWiredError('', ''),
  ];

  it('the table of errors shows each error with its code and status', () => {
    expect(table(file, heading).map(([name, code, status]) => [name, code, Number(status)])).toEqual(
      ERRORS.map((error) => [error.name, error.code, error.getStatus()]),
    );
  });

  it('the table of errors misses none', () => {
    const exported = Object.keys(library).filter((name) => /^Lock\w+Error$/.test(name));
    expect(
      table(file, heading)
        .map(([name]) => name!)
        .sort(),
    ).toEqual(exported.sort());
  });
});

it('the reference lists all fields of the errors, and no others', () => {
  const documented = table('docs/reference/errors.md', '## Which fields do they have?').flatMap(([, fields]) =>
    fields!.split(', '),
  );
  const facts = {
    keys: [],
    label: 'l',
    waitedMs: 0,
    waitMs: 0,
    holder: 'h',
    ahead: 0,
    leaseLeftMs: undefined,
    holding: [],
    maxWaiters: 0,
    heldMs: 0,
    cause: 1,
  };
  const errors = [
    new LockTimeoutError({ ...facts, reason: 'held' }),
    new LockLostError({ ...facts, reason: 'expired' }),
    new LockUnavailableError('', 1),
  ];
  // Fields from Nest and from JavaScript are documented there.
  const inherited = ['name', 'stack', 'response', 'status', 'options', 'errorCode'];
  const fields = new Set(
    errors.flatMap((error) => Object.getOwnPropertyNames(error)).filter((field) => !inherited.includes(field)),
  );
  expect([...new Set(documented)].sort()).toEqual([...fields].sort());
});
