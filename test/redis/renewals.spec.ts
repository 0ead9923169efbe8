import { expect, it } from '@jest/globals';
import { RefusedError } from '../../lib/redis/connection/connection-errors.js';
import { renewAll } from '../../lib/redis/locks/renewals.js';
import type { Transport } from '../../lib/redis/locks/transport.js';

it('a renewal that is sent again, alone, asks for the lease that its holder counts on', async () => {
  const locks = ['a', 'b'].map((key) => ({ keys: [key], token: `of ${key}`, leaseMs: 6000 }));
  const sent: unknown[][] = [];
  const run = async (_script: unknown, keys: readonly string[], args: readonly unknown[]) => {
    sent.push([...args]);
    // The holder shortens its lease meanwhile.
    locks[0]!.leaseMs = 1000;
    if (keys.length > 1) throw new RefusedError('refused', new Error('NOPERM this user may not use that key'));
    return { gone: [], unknown: [] };
  };
  const transport = { names: { lock: (key: string) => key }, renewals: { run } } as unknown as Transport;
  expect(await renewAll(transport, locks)).toEqual({ gone: [], unknown: [] });
  expect(sent).toEqual([
    ['of a', 6000, 'of b', 6000],
    ['of a', 6000],
    ['of b', 6000],
  ]);
});
