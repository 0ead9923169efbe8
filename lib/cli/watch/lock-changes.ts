import type { ListedHolder, ListedLock, LockList } from '../../core/lock-list.js';
import { isKept, partsOf } from '../../core/request/lock-token.js';
import { Doubt } from './doubt.js';
import type { Look, SeenHolder, SeenKey, Stored } from './look.js';

type Unreached = LockList['unreached'][number];

/** What has changed about a lock, or about who can be asked, between two looks. */
export type LockChange =
  /** `held`: when it was first seen, it was held already. `orphaned`: its process has ended, Redis still keeps it. */
  | ({ readonly event: 'held' | 'acquired' | 'orphaned' | 'ended'; readonly holder: ListedHolder } & OfKey)
  | ({ readonly event: 'waiting'; readonly before: number } & OfKey)
  | ({ readonly event: 'unreached' } & Unreached)
  | ({ readonly event: 'reached' } & Pick<Unreached, 'what' | 'name'>);

type OfKey = Pick<ListedLock, 'key' | 'mode' | 'permits' | 'waiterCount'>;

/** Tells what has changed from look to look. Of what it can't know it says nothing. */
export class LockChanges {
  /** Asks the store who has a key. */
  readonly #stored: (key: string) => Promise<Stored>;
  readonly #seen = new Map<string, SeenKey>();
  #unreached = new Map<string, Unreached>();

  constructor(stored: (key: string) => Promise<Stored>) {
    this.#stored = stored;
  }

  /** Takes one more look. */
  async next({ list, live, sinceMs }: Look): Promise<LockChange[]> {
    const changes = this.#reachable(list);
    const doubt = new Doubt(list, live);
    const listed = new Map(list.locks.map((lock) => [lock.key, lock]));
    for (const key of new Set([...this.#seen.keys(), ...listed.keys()])) {
      const lock = listed.get(key) ?? { ...this.#seen.get(key)!.lock, holders: [], waiters: [], waiterCount: 0 };
      changes.push(...(await this.#changesOf(lock, doubt, sinceMs)));
    }
    return changes;
  }

  async #changesOf(lock: ListedLock, doubt: Doubt, sinceMs: number): Promise<LockChange[]> {
    const { key, mode, permits } = lock;
    const before = this.#seen.get(key);
    // What `atLeast` keeps has ended, and is listed only while others wait.
    const listed = lock.holders.filter((holder) => !holder.isKept);
    const holders = recognized(listed, before?.holders ?? [], doubt);
    const fresh = holders.filter((holder) => !before?.holders.some((one) => isSame(one, holder)));
    const missing = before?.holders.filter((holder) => !holders.some((one) => isSame(one, holder))) ?? [];
    const { kept, ended } = await this.#sorted(key, missing, {
      isTaken: mode === 'exclusive' && fresh.length > 0,
      doubt,
    });
    const { waiters, waiterCount } = doubt.waitersOf(lock, before);
    const of = { key, mode, permits, waiterCount };
    if (holders.length + kept.length + waiterCount === 0) this.#seen.delete(key);
    else this.#seen.set(key, { lock, holders: [...holders, ...kept], waiters, waiterCount });
    const wereOrphaned = before?.holders.filter(({ isOrphaned }) => isOrphaned) ?? [];
    const orphaned = [...holders, ...kept].filter(
      (holder) => holder.isOrphaned && !wereOrphaned.some((one) => isSame(one, holder)),
    );
    const waited = before?.waiterCount ?? 0;
    return [
      ...ended.map((holder) => ({ event: 'ended' as const, ...of, holder: asListed(holder) })),
      ...fresh.map((holder) => ({
        event: isOld(holder, sinceMs) ? ('held' as const) : ('acquired' as const),
        ...of,
        holder: asListed(holder),
      })),
      ...orphaned.map((holder) => ({ event: 'orphaned' as const, ...of, holder: asListed(holder) })),
      ...(waiterCount === waited ? [] : [{ event: 'waiting' as const, ...of, before: waited }]),
    ];
  }

  /** Sorts holders that are no longer listed: whose lock has ended for sure, and whose may go on. */
  async #sorted(
    key: string,
    missing: readonly SeenHolder[],
    { isTaken, doubt }: { readonly isTaken: boolean; readonly doubt: Doubt },
  ): Promise<{ readonly kept: readonly SeenHolder[]; readonly ended: readonly SeenHolder[] }> {
    const unsure = isTaken ? [] : missing.filter((holder) => doubt.isUnsure(holder));
    if (unsure.length === 0) return { kept: [], ended: missing };
    let stored: Stored | undefined;
    try {
      stored = await this.#stored(key);
    } catch {
      // What nobody can know stays as it was.
      return { kept: unsure, ended: missing.filter((holder) => !unsure.includes(holder)) };
    }
    const kept = unsure.flatMap((holder): SeenHolder[] => {
      const own = stored.find(({ token }) => !isKept(token) && isTokenOf(holder, token));
      if (!own) return [];
      const isNew = !holder.isOrphaned && doubt.isDead(holder);
      return [isNew ? { ...holder, remaining: own.leaseLeftMs, isOrphaned: true } : holder];
    });
    const ended = missing.filter((holder) => !kept.some((one) => isSame(one, holder)));
    return { kept, ended };
  }

  #reachable({ unreached }: LockList): LockChange[] {
    const before = this.#unreached;
    this.#unreached = new Map(unreached.map((one) => [`${one.what} ${one.instance ?? one.name}`, one]));
    const gone = [...before].filter(([id]) => !this.#unreached.has(id));
    const fresh = [...this.#unreached].filter(([id, { reason }]) => before.get(id)?.reason !== reason);
    return [
      ...fresh.map(([, one]) => ({ event: 'unreached' as const, ...one })),
      ...gone.map(([, { what, name }]) => ({ event: 'reached' as const, what, name })),
    ];
  }
}

/**
 * Returns the holders that are listed, with what was seen of them before: of one whose process is silent or dead, and
 * for whose key others wait, the list has no more than the store.
 */
function recognized(listed: readonly ListedHolder[], seen: readonly SeenHolder[], doubt: Doubt): SeenHolder[] {
  const left = [...seen];
  return listed.map((holder) => {
    const at = left.findIndex((one) => isSame(one, holder));
    const [known] = at < 0 ? [] : left.splice(at, 1);
    if (holder.heldMs !== undefined) return holder;
    const { token, remaining } = holder;
    return { ...(known ?? holder), token, remaining, isOrphaned: doubt.isDead(holder) };
  });
}

const asListed = ({ isOrphaned: _, ...holder }: SeenHolder): ListedHolder => holder;

/** Whether a holder that is seen for the first time had the lock at the last look: it was not listed then. */
const isOld = ({ heldMs }: ListedHolder, sinceMs: number): boolean => heldMs === undefined || heldMs > sinceMs;

/** Whether both are one holder, of whom one look may know less than another. */
function isSame(one: ListedHolder, other: ListedHolder): boolean {
  if (one.instance === undefined || other.instance === undefined) return one.token === other.token;
  if (one.instance !== other.instance) return false;
  return one.fence === other.fence || one.fence === undefined || other.fence === undefined;
}

function isTokenOf({ instance, token }: ListedHolder, stored: string): boolean {
  return instance === undefined ? token === stored : partsOf(stored).instance === instance;
}
