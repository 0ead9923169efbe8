import type { LockStore, Sharing } from 'nest-redis-lock';
import { deferred } from '../deferred.js';

let count = 0;

/** Queues in a store for a caller that never asks again: what becomes of it, the store must tell. */
export async function waitSilently(
  store: LockStore,
  key: string,
  sharing: Sharing,
): Promise<{ readonly granted: Promise<void> }> {
  const granted = deferred();
  const source = `silent:1:${++count}`;
  const isTold = (token: string) => {
    if (!token.startsWith(`${source}.`)) return false;
    granted.resolve();
    return true;
  };
  store.listen({
    source,
    granted: (token) => isTold(token),
    offered: (token) => isTold(token),
    contended: () => undefined,
    forceReleased: () => undefined,
    describe: () => undefined,
    answer: () => undefined,
    resync: () => undefined,
  });
  const { granted: atOnce } = await store.acquire({
    keys: [key],
    token: `${source}.1`,
    leaseMs: 30_000,
    sharing,
    label: undefined,
    queue: true,
  });
  if (atOnce) throw new Error(`There was nothing to wait for: ${key} was free.`);
  return { granted: granted.promise };
}
