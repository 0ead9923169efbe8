import { describe, expect, it } from '@jest/globals';
import type { ListedHolder, ListedLock, ListedWaiters } from 'nest-redis-lock';
import { shownLocks } from '../../lib/cli/show/listed-locks.js';
import { shortened, textWidth } from '../../lib/cli/show/text-width.js';
import { unreachedLines } from '../../lib/cli/show/unreached.js';

const CALLER = { host: 'api-3', pid: 4711, instance: 'x', method: undefined, template: undefined, label: 'transfer' };

const HOLDER: ListedHolder = {
  ...CALLER,
  token: undefined,
  fence: 7,
  traceparent: undefined,
  isKept: false,
  remaining: 27_000,
  since: new Date(),
  heldMs: 12_345,
};
const WAITER: ListedWaiters = {
  ...{ ...CALLER, label: 'book', since: new Date(), waitedMs: 900, traceparent: undefined },
  ...{ mode: 'exclusive', permits: undefined, callers: 3 },
};

const lock = (given: Partial<ListedLock> = {}): ListedLock => ({
  key: 'account:42',
  mode: 'exclusive',
  permits: undefined,
  holders: [HOLDER],
  holderCount: 1,
  waiters: [],
  waiterCount: 0,
  ...given,
});

const IN_PIPE = { columns: undefined, hasColours: false };

/** The cells of the only lock. */
const cells = (given: Partial<ListedLock>) => shownLocks([lock(given)], IN_PIPE)[1]!.split(/ {2,}/);

describe('The table of locks', () => {
  it.each<[Partial<ListedLock>, string[]]>([
    [{}, ['account:42', 'held', 'api-3:4711', '12 s', '27 s', '0', 'transfer']],
    [
      { mode: 'read', holderCount: 3, holders: [HOLDER, { ...HOLDER, remaining: 5000 }], waiterCount: 2 },
      ['account:42', '3 readers', 'api-3:4711 +2', '12 s', '5.0 s', '2', 'transfer'],
    ],
    [{ mode: 'read' }, ['account:42', '1 reader', 'api-3:4711', '12 s', '27 s', '0', 'transfer']],
    [{ mode: 'permit', permits: 5 }, ['account:42', '1 of 5', 'api-3:4711', '12 s', '27 s', '0', 'transfer']],
    [
      { holders: [], holderCount: 0, waiters: [WAITER], waiterCount: 3 },
      ['account:42', 'waited for', '-', '0.9 s', '-', '3', 'book'],
    ],
    [
      { holders: [{ ...HOLDER, heldMs: undefined, since: undefined, label: undefined }] },
      ['account:42', 'no answer', 'api-3:4711', '-', '27 s', '0', '-'],
    ],
    [
      { holders: [{ ...HOLDER, host: undefined, pid: undefined, heldMs: undefined, label: undefined }] },
      ['account:42', 'no answer', '-', '-', '27 s', '0', '-'],
    ],
    [
      { holders: [{ ...HOLDER, isKept: true, heldMs: undefined, since: undefined, label: undefined }] },
      ['account:42', 'kept', 'api-3:4711', '-', '27 s', '0', '-'],
    ],
  ])('shows %j as %j', (given, shown) => {
    expect(cells(given)).toEqual(shown);
  });

  it.each([60, 80, 120, 200])('fits into a terminal of %d columns, with all its columns in line', (columns) => {
    const long = { ...HOLDER, label: 'ImageService.resizeAllOfThem', host: 'a-pod-with-a-very-long-name-5d8f7c' };
    const names = ['account:42', `images:${'x'.repeat(300)}:7`, '残高:口座:'.repeat(20), '👩‍👩‍👧'.repeat(60)];
    const lines = shownLocks(
      names.map((key) => lock({ key, holders: [long] })),
      { columns, hasColours: false },
    );
    const widths = lines.map(textWidth);
    // Below this, no text can be shortened further.
    expect(Math.max(...widths)).toBeLessThanOrEqual(Math.max(columns, 73));
    const ends = lines.map((line) => textWidth(/^.*? {2,}(?=\S+ {2,}\S)/.exec(line)![0]));
    expect(new Set(ends).size).toBe(1);
    if (columns >= 120) expect(lines[2]).toMatch(/^images:x+…x+:7 /);
  });

  it('in a pipe, a key is whole, however long', () => {
    const key = 'x'.repeat(1024);
    expect(cells({ key })[0]).toBe(key);
  });

  it('colours nothing but the heads, waiters, and a holder that does not answer', () => {
    const lines = shownLocks(
      [lock({ waiterCount: 2 }), lock({ holders: [{ ...HOLDER, heldMs: undefined }] }), lock()],
      {
        columns: 100,
        hasColours: true,
      },
    );
    const [heads, ...rows] = lines.map((line) => line.replaceAll('\x1b', '^'));
    expect(heads!.match(/\^\[2m/g)).toHaveLength(7);
    expect(rows.map((row) => row.match(/\^\[\d+m.*?\^\[39m/g))).toEqual([
      ['^[33m2^[39m'],
      ['^[31mno answer^[39m'],
      null,
    ]);
  });

  it('shows what is in a key so that nothing of it reaches the terminal', () => {
    expect(cells({ key: 'a\x1b[2Jb\nc' })[0]).toBe('a\\u001b[2Jb\\nc');
  });

  it.each([
    ['abc', 3],
    ['日本', 4],
    ['👩‍👩‍👧é', 3],
    ['a\u200bb', 2],
  ])('the width of %j is %d', (text, width) => {
    expect(textWidth(text)).toBe(width);
  });

  it('a text is shortened in the middle, never beyond its width', () => {
    expect(shortened('account:42', 10)).toBe('account:42');
    expect(shortened('account:4242', 10)).toBe('accou…4242');
    expect(shortened('日本語日本語', 8)).toBe('日本…語');
  });

  it('names five that could not be reached, and counts the others', () => {
    const unreached = Array.from({ length: 7 }, (_, pid) => ({
      ...({ what: 'process', reason: 'silent', name: `api:${pid}` } as const),
      message: `The process api:${pid} did not answer.`,
    }));
    expect(unreachedLines(unreached).at(-1)).toMatch(/^2 more did not answer/);
    expect(unreachedLines(unreached.slice(0, 5))).toEqual(unreached.slice(0, 5).map(({ message }) => message));
  });
});
