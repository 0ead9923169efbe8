import { describe, expect, it } from '@jest/globals';
import type { HeldRow } from '../../lib/page/page-snapshot.js';
import { hashOfToken } from '../../lib/page/view/hash-of-token.js';
import { storedHolders } from '../../lib/page/view/key-view.js';

const PROCESS = 'host:1:abcdefghijklmnop';
const tokens = ['a', 'b'].map((each) => `${PROCESS}.${each}`);

const row = (label: string, fence: number) =>
  ({ key: 'sem', process: PROCESS, label, fence, tokenHash: null, mode: 'permit' }) as HeldRow;

describe('The holders of a key that its process shares with itself', () => {
  const stored = {
    sharing: 2,
    holders: tokens.map((token) => ({ token, leaseLeftMs: 1000 })),
    waiters: [],
  } as unknown as Parameters<typeof storedHolders>[0];
  const held = [row('b', 2), row('a', 1)];

  it('have no fences of others while the process is silent, so that nobody takes away the wrong one', () => {
    const rows = storedHolders(stored, held, { key: 'sem', waiters: 0, answering: new Set() });
    expect(rows.map(({ fence, tokenHash, isSilent }) => [fence, tokenHash, isSilent])).toEqual(
      tokens.map((token) => [null, hashOfToken(token), true]),
    );
  });

  it('are what the process says while it answers', () => {
    const rows = storedHolders(stored, held, { key: 'sem', waiters: 0, answering: new Set([PROCESS]) });
    expect(rows.map(({ label }) => label)).toEqual(['b', 'a']);
  });
});
