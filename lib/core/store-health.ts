import { randomUUID } from 'node:crypto';
import type { LockStore } from '../store/lock-store.js';
import { TokenSource } from './request/lock-token.js';

/** Whether locks can be had. */
export interface StoreHealth {
  readonly isUp: boolean;
  /** How many nodes gave one, of how many: one of one, if it is no quorum. */
  readonly up: number;
  readonly of: number;
  /** What they said that gave none. */
  readonly errors: readonly Error[];
  /** What is wrong with those that gave one. */
  readonly problems: readonly string[];
}

/** The lease of a lock that is only tried, in ms: if it is not given back, nobody misses its key. */
const LEASE_MS = 100;

/** Takes a lock on a key that nobody else has, and gives it back; on each node of a quorum. Settles within their time-out. */
export async function healthOf(store: LockStore): Promise<StoreHealth> {
  const nodes = store.nodes ?? [store];
  const command = {
    keys: [`nest-redis-lock:health:${randomUUID()}`],
    token: new TokenSource().next(false),
    leaseMs: LEASE_MS,
    sharing: 'exclusive',
    label: 'health',
    queue: false,
  } as const;
  const tries = await Promise.allSettled(
    nodes.map(async (node) => {
      const [, problems = []] = await Promise.all([
        node.acquire(command).then(() => node.cancel(command)),
        node.problems?.(),
      ]);
      return problems;
    }),
  );
  const errors = tries.filter((one) => one.status === 'rejected').map(({ reason }) => reason as Error);
  const up = nodes.length - errors.length;
  const problems = tries.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
  return { isUp: up > nodes.length / 2, up, of: nodes.length, errors, problems };
}
