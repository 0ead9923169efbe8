import { expect, it } from '@jest/globals';
import type { HeldRow, PageSnapshot } from '../../lib/page/page-snapshot.js';
import { adviceOn } from '../../lib-page/parts/advice.js';

const holder: HeldRow = {
  ...{ key: 'account:42', keyLength: 10, mode: 'exclusive', heldMs: 1, leaseLeftMs: 20_000, fence: 7, waiters: 1 },
  ...{
    label: 'A.b',
    template: null,
    method: null,
    tokenHash: null,
    process: 'api:1:x',
    host: 'api',
    pid: 1,
    traceId: null,
    isOverdue: false,
    isSilent: false,
    isKept: false,
  },
};
const noWaits: PageSnapshot['waitGraph'] = { calls: { total: 0, items: [] }, edges: [], cycles: [] };
const alive = { waitGraph: noWaits };

it('a holder whose process lives is to be looked at first, as its work may still run', () => {
  const { verdict, reasons } = adviceOn(holder, 1, alive);
  expect(verdict).toMatch(/is alive/);
  expect(reasons.join(' ')).toMatch(/goes on beside the next holder.*fence 7/s);
});

it('a holder whose process does not answer may be gone: then its lease ends by itself', () => {
  expect(adviceOn({ ...holder, isSilent: true }, 1, alive).verdict).toMatch(/stalled or gone/);
  const silent = { ...holder, process: null, fence: null, heldMs: null };
  expect(adviceOn(silent, 1, alive).verdict).toMatch(/stalled or gone.*Wait for that first/);
});

it('a holder whose work is done is not told to be running: `atLeast` keeps its key', () => {
  const { verdict, reasons } = adviceOn({ ...holder, isKept: true, fence: null, heldMs: null }, 0, alive);
  expect(verdict).toMatch(/Nobody is inside.*“atLeast” keeps the key/);
  expect(reasons.join(' ')).toMatch(/a job may run a second time/);
});

it('a key without an end stays until somebody removes it', () => {
  const foreign = { ...holder, process: null, leaseLeftMs: null };
  expect(adviceOn(foreign, 1, alive).verdict).toMatch(/stays until somebody removes it/);
});

it('there is no hurry for a key that nobody waits for', () => {
  expect(adviceOn(holder, 0, alive).reasons).toContain('Nobody waits for it.');
  expect(adviceOn(holder, 1, alive).reasons).not.toContain('Nobody waits for it.');
});

it('a holder in a deadlock is named so, and only that one', () => {
  const call = { ...holder, id: 'a', holds: ['account:42'], waitsFor: ['account:1'], waitingMs: 1 };
  const waitGraph = { ...noWaits, calls: { total: 1, items: [call] }, cycles: [['a', 'b']] };
  const reasonsOf = (key: string) => adviceOn({ ...holder, key }, 1, { waitGraph }).reasons.join(' ');
  expect(reasonsOf('account:42')).toMatch(/deadlock/);
  expect(reasonsOf('account:43')).not.toMatch(/deadlock/);
});
