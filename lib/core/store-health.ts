import { randomUUID } from 'node:crypto';
import { nextTurn } from '../clock/next-turn.js';
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

/** How long it waits for the other nodes of a quorum when a majority has granted the trial lock, in ms. */
const OTHERS_MS = 100;

/**
 * Acquires a lock on a key of its own and releases it, on each node of a quorum. Settles within their time-out; soon
 * after a majority has granted, if one has.
 */
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
  const trials = await settledSoon(
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
  return { isUp: isMajority(up, nodes), up, of: nodes.length, errors, problems };
}

const isMajority = (count: number, { length }: readonly unknown[]): boolean => count > length / 2;

/** Waits for all trials; but not for long once a majority has succeeded: those that are late then count as failed. */
async function settledSoon<T>(trials: readonly Promise<T>[]): Promise<readonly PromiseSettledResult<T>[]> {
  let granted = 0;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    // Where the process stood still, the replies may have come meanwhile.
    const end = (): void => void nextTurn().then(() => reject(tooLate()));
    const count = (): void => {
      if (isMajority(++granted, trials)) timer ??= setTimeout(end, OTHERS_MS);
    };
    for (const trial of trials) trial.then(count, () => undefined);
  });
  const settled = await Promise.allSettled(trials.map((trial) => Promise.race([trial, late])));
  clearTimeout(timer);
  return settled;
}

const tooLate = (): Error =>
  new LockUnavailableError(`A node had not replied ${OTHERS_MS} ms after a majority had granted a lock.`);
