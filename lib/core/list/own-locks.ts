import { now } from '../../clock/deadline.js';
import { LONGEST_ANSWER } from '../../store/lock-store.js';
import type { Lease } from '../lease/lease.js';
import type { LeaseRegistry } from '../lease/lease-registry.js';
import type { CallSite } from '../request/call-site.js';
import type { LockRequest } from '../request/lock-request.js';
import type { LocalQueue } from '../waiting/local-queue.js';
import type { PendingAcquires } from '../waiting/pending-acquires.js';
import { waitNotes } from '../waiting/wait-notes.js';
import type { WaitingCall } from '../waiting/waiting-call.js';
import { First } from './first.js';
import { globMatcher } from './glob.js';
import {
  LONGEST_NAME,
  MOST_NAMED,
  type ListAnswer,
  type ListQuestion,
  type OwnHolder,
  type OwnKey,
  type OwnWaiters,
  type Place,
} from './list-question.js';

interface OwnLocksParts {
  readonly leases: LeaseRegistry;
  readonly localQueue: LocalQueue<unknown>;
  readonly pendingAcquires: PendingAcquires;
}

/** The moment of an answer, by both clocks: ages in it can be compared. */
interface Moment {
  /** In ms since 1970. */
  readonly date: number;
  /** By the monotonic clock. */
  readonly time: number;
}

/** A key of this process, before anything is written down about it. */
interface Found {
  readonly key: string;
  readonly leases: Lease[];
  readonly waits: WaitingCall[];
  /** Since when its first caller holds it or waits for it, in ms since 1970: its place in the order. */
  since: number;
  /** How long ago that was, in ms. */
  ageMs: number;
}

/** How much of an answer its keys may take; the rest is for what stands around them. */
const MOST_CHARACTERS = LONGEST_ANSWER - 10_000;

/** More keys than these never fit: none takes less than a hundred characters. */
const MOST_KEYS = MOST_CHARACTERS / 100;

/** How many callers are named of a key whose callers have long names. */
const FEW_NAMED = 5;

/** Lists what the callers of this process hold and wait for, from what the process keeps anyway. */
export class OwnLocks {
  readonly #parts: OwnLocksParts;

  constructor(parts: OwnLocksParts) {
    this.#parts = parts;
  }

  /** Answers with as many keys as fit into one message. */
  answer(question: ListQuestion): ListAnswer {
    const moment = { date: Date.now(), time: now() };
    const { first, total } = this.#find(question, moment);
    const keys: OwnKey[] = [];
    let characters = 0;
    let count = 0;
    for (; count < first.length && keys.length < question.limit; count++) {
      const { own, length } = ownKey(first[count]!, moment);
      characters += length + 1;
      if (characters > MOST_CHARACTERS && count > 0) break;
      keys.push(own);
    }
    return { keys, total, next: count < total ? placeOf(first[count - 1]!) : undefined };
  }

  /** Finds the keys that are asked for, since the longest time first: as many as may fit, and how many there are. */
  #find(
    { match, olderThanMs, keys, after }: ListQuestion,
    { time }: Moment,
  ): { readonly first: readonly Found[]; readonly total: number } {
    const { leases, localQueue, pendingAcquires } = this.#parts;
    const isNamed = keys && new Set(keys);
    const isMatch = globMatcher(match);
    const found = new Map<string, Found>();
    const find = (key: string, since: number, ageMs: number): Found | undefined => {
      let one = found.get(key);
      if (!one) {
        if (isNamed ? !isNamed.has(key) : !isMatch(key)) return undefined;
        found.set(key, (one = { key, leases: [], waits: [], since, ageMs }));
      }
      one.since = Math.min(one.since, since);
      one.ageMs = Math.max(one.ageMs, ageMs);
      return one;
    };
    for (const lease of leases) {
      if (!lease.isLive) continue;
      const { acquiredAt } = lease.details!;
      for (const key of lease.keys) find(key, acquiredAt, ageOf(lease, time))?.leases.push(lease);
    }
    for (const waits of [localQueue.waiting(), pendingAcquires.waiting()])
      for (const wait of waits) find(wait.key, sinceOf(wait), time - wait.startedAt)?.waits.push(wait);
    const first = new First<Found>(
      MOST_KEYS,
      (one, other) => one.since - other.since || (one.key < other.key ? -1 : 1),
    );
    let total = 0;
    for (const one of found.values()) {
      if (one.ageMs < olderThanMs || (after && !isBehind(one, after))) continue;
      total++;
      first.add(one);
    }
    return { first: first.items(), total };
  }
}

/** Rounded up: what the time of day, in whole ms, says of a lock is never more. */
const ageOf = ({ heldSince }: Lease, time: number): number => Math.ceil(time - heldSince);

const placeOf = ({ since, key }: Found): Place => [since, key];

/** Whether a key comes behind a place. */
const isBehind = (one: Found, [since, key]: Place): boolean =>
  one.since > since || (one.since === since && one.key > key);

/** Since when a call waits: the same each time, unlike what both clocks would make of it. */
const sinceOf = ({ startedAt }: WaitingCall): number => Math.round(performance.timeOrigin + startedAt);

/** Names some callers of a key, and fewer where their names are so long that one message could not hold them. */
function ownKey(found: Found, moment: Moment): { readonly own: OwnKey; readonly length: number } {
  const own = describe(found, moment, MOST_NAMED);
  const { length } = JSON.stringify(own);
  if (length < MOST_CHARACTERS) return { own, length };
  const less = describe(found, moment, FEW_NAMED);
  return { own: less, length: JSON.stringify(less).length };
}

function describe({ key, leases, waits }: Found, moment: Moment, most: number): OwnKey {
  leases.sort((one, other) => one.heldSince - other.heldSince);
  const waiters = groups(waits, moment);
  return {
    key,
    sharing: leases[0]?.sharing ?? waits[0]!.request.sharing,
    holders: leases.slice(0, most).map((lease) => ownHolder(lease, moment)),
    holderCount: leases.length,
    waiters: waiters.slice(0, most),
    waiterCount: waits.length,
  };
}

function ownHolder(lease: Lease, { time }: Moment): OwnHolder {
  const { fence, label, traceparent, acquiredAt } = lease.details!;
  return {
    token: lease.isTokenOfOne ? lease.token : undefined,
    fence,
    traceparent,
    label,
    ...siteOf(lease),
    since: acquiredAt,
    ageMs: ageOf(lease, time),
    remainingMs: Math.max(0, Math.floor(lease.endsAt - time)),
  };
}

/** The method and the template of a call, as much of them as anybody reads. */
function siteOf({ site }: Pick<LockRequest, 'site'>): Partial<CallSite> {
  return site ? { method: site.method.slice(0, LONGEST_NAME), template: site.template?.slice(0, LONGEST_NAME) } : {};
}

/** Counts those that are alike, since the longest time first. */
function groups(waits: WaitingCall[], { date, time }: Moment): OwnWaiters[] {
  const byKind = new Map<string, OwnWaiters & { callers: number }>();
  waits.sort((one, other) => one.startedAt - other.startedAt);
  for (const { request, startedAt } of waits) {
    const { sharing, label, site } = request;
    const kind = JSON.stringify([sharing, label, site?.method, site?.template]);
    const group = byKind.get(kind);
    if (group) group.callers++;
    else {
      const ageMs = Math.round(time - startedAt);
      byKind.set(kind, {
        sharing,
        label,
        ...siteOf(request),
        traceparent: waitNotes(request).traceparent,
        callers: 1,
        since: date - ageMs,
        ageMs,
      });
    }
  }
  return [...byKind.values()];
}
