import { randomUUID } from 'node:crypto';
import { LockUnavailableError } from '../errors/lock-unavailable.error.js';
import type { LockStore } from '../store/lock-store.js';
import { TokenSource } from './request/lock-token.js';

/** Whether locks can be acquired. */
export interface StoreHealth {
  readonly isUp: boolean;
  /** How many nodes granted a lock. */
  readonly up: number;
  /** How many nodes there are: one, if it is no quorum. */
  readonly of: number;
  /** What those said that granted none. */
  readonly errors: readonly Error[];
  /** What is wrong with those that granted one. */
  readonly problems: readonly string[];
}

/** That of an app that ends. */
export function endingHealth(): StoreHealth {
  const error = new LockUnavailableError('This app is shutting down and takes no new locks.');
  return { isUp: false, up: 0, of: 1, errors: [error], problems: [] };
}

/** The lease of the trial lock, in ms. If it is not released, nobody misses its key. */
const LEASE_MS = 100;

/** Acquires a lock on a key of its own and releases it, on each node of a quorum. Settles within their time-out. */
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
  const trials = await Promise.allSettled(
    nodes.map(async (node) => {
      const [, problems = []] = await Promise.all([node.acquire(command), node.problems?.()]);
      // Its lease is over soon in any case.
      node.cancel(command).catch(() => undefined);
      return problems;
    }),
  );
  const errors = trials.filter((one) => one.status === 'rejected').map(({ reason }) => reason as Error);
  const up = nodes.length - errors.length;
  const problems = trials.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
  return { isUp: up > nodes.length / 2, up, of: nodes.length, errors, problems };
}
