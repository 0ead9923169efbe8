import { isKept, permitsOf, type KeyView, type Sharing } from '../store/lock-store.js';
import { partsOf } from './request/lock-token.js';
import { modeOf } from './request/held-mode.js';
import type { OwnHolder, OwnKey, OwnWaiters } from './list/list-question.js';
import type { ListedHolder, ListedLock, ListedWaiters } from './lock-list.js';

/** What the processes said of one key. */
export interface ListedKey {
  readonly key: string;
  /** By the source of the process. */
  readonly bySource: Map<string, OwnKey>;
  /** What the store knows, with those holders only that no process claims. */
  view?: KeyView | undefined;
}

/** Collects what the processes say, key by key. */
export class ListedKeys {
  readonly #byKey = new Map<string, ListedKey>();

  get size(): number {
    return this.#byKey.size;
  }

  /** Takes what a process says now, instead of what it said before. */
  add(source: string, own: OwnKey): void {
    let listed = this.#byKey.get(own.key);
    if (!listed) this.#byKey.set(own.key, (listed = { key: own.key, bySource: new Map() }));
    listed.bySource.set(source, own);
  }

  /** Lists those that are held the longest first. A key that nobody says to hold counts from its first waiter on. */
  oldest(limit: number): ListedKey[] {
    const aged = [...this.#byKey.values()].map((listed) => ({ listed, ageMs: ageOf(listed) }));
    return aged
      .sort((one, other) => other.ageMs - one.ageMs || (one.listed.key < other.listed.key ? -1 : 1))
      .slice(0, limit)
      .map(({ listed }) => listed);
  }
}

const isHeld = ({ bySource }: ListedKey): boolean => [...bySource.values()].some(({ holders }) => holders.length > 0);

/** Whether there may be holders that no process claims, and that somebody waits for. */
export function mayHaveOthers({ bySource }: ListedKey): boolean {
  const all = [...bySource.values()];
  const isOwned = all.some(({ holders, sharing }) => holders.length > 0 && sharing === 'exclusive');
  return !isOwned && all.some(({ waiters }) => waiters.length > 0);
}

function ageOf(listed: ListedKey): number {
  const byHeld = isHeld(listed);
  let oldest = 0;
  for (const { holders, waiters } of listed.bySource.values())
    for (const { ageMs } of byHeld ? holders : waiters) oldest = Math.max(oldest, ageMs);
  return oldest;
}

/** Describes a key for operators. */
export function listedLock(listed: ListedKey): ListedLock {
  const { key, view } = listed;
  const all = [...listed.bySource];
  const holders = all.flatMap(([source, own]) => own.holders.map((holder) => listedHolder(source, holder)));
  const waiters = all.flatMap(([source, own]) => own.waiters.map((group) => listedWaiters(source, group)));
  holders.sort((one, other) => (other.heldMs ?? 0) - (one.heldMs ?? 0));
  waiters.sort((one, other) => other.waitedMs - one.waitedMs);
  const unclaimed = view?.holders.map(({ token, leaseLeftMs }) => unclaimedHolder(token, leaseLeftMs)) ?? [];
  const sharing = (isHeld(listed) ? undefined : view?.sharing) ?? sharingOf(all.map(([, own]) => own));
  return {
    key,
    mode: modeOf(sharing),
    permits: permitsOf(sharing),
    holders: [...holders, ...unclaimed],
    holderCount: sum(all, ({ holderCount }) => holderCount) + unclaimed.length,
    waiters,
    waiterCount: sum(all, ({ waiterCount }) => waiterCount),
  };
}

const sum = (all: readonly (readonly [string, OwnKey])[], count: (own: OwnKey) => number): number =>
  all.reduce((total, [, own]) => total + count(own), 0);

const sharingOf = (all: readonly OwnKey[]): Sharing =>
  (all.find(({ holders }) => holders.length > 0) ?? all[0]!).sharing;

function listedHolder(source: string, { token, remainingMs, since, ageMs, ...rest }: OwnHolder): ListedHolder {
  return {
    token,
    ...partsOf(`${source}.0`),
    label: rest.label,
    method: rest.method,
    template: rest.template,
    remaining: remainingMs,
    fence: rest.fence,
    traceparent: rest.traceparent,
    isKept: false,
    since: new Date(since),
    heldMs: ageMs,
  };
}

/** A holder whose process did not answer, or is another tool; or whose work is done. */
function unclaimedHolder(token: string, remaining: number): ListedHolder {
  const nothing = {
    label: undefined,
    method: undefined,
    template: undefined,
    fence: undefined,
    traceparent: undefined,
  };
  return {
    token,
    ...partsOf(token),
    ...nothing,
    isKept: isKept(token),
    remaining,
    since: undefined,
    heldMs: undefined,
  };
}

function listedWaiters(source: string, { sharing, since, ageMs, ...rest }: OwnWaiters): ListedWaiters {
  const { host, pid, instance } = partsOf(`${source}.0`);
  return {
    host,
    pid,
    instance,
    label: rest.label,
    method: rest.method,
    template: rest.template,
    mode: modeOf(sharing),
    permits: permitsOf(sharing),
    callers: rest.callers,
    traceparent: rest.traceparent,
    since: new Date(since),
    waitedMs: ageMs,
  };
}
