import { now } from '../../clock/deadline.js';
import type { Lease } from '../lease/lease.js';
import type { LeaseRegistry } from '../lease/lease-registry.js';
import type { CallSite } from '../request/call-site.js';
import { modeOf } from '../request/held-mode.js';
import type { LocalQueue } from '../waiting/local-queue.js';
import type { PendingAcquires } from '../waiting/pending-acquires.js';
import { waitNotes } from '../waiting/wait-notes.js';
import type { WaitingCall } from '../waiting/waiting-call.js';
import {
  MOST_CALLS,
  MOST_NESTED,
  MOST_QUEUES,
  type CallList,
  type CallLists,
  type CallsAnswer,
  type CallsQuestion,
  type OwnCall,
} from './calls-question.js';
import { First } from './first.js';
import { fitting } from './fitting.js';

/** Most characters of the parts of an answer, which is one message of 100,000 at most. */
const LISTS_FIT = 70_000;
const SIDE_LISTS_FIT = 10_000;

interface OwnCallsParts {
  readonly leases: LeaseRegistry;
  readonly localQueue: LocalQueue<unknown>;
  readonly pendingAcquires: PendingAcquires;
  /** `host:pid`, which a text finds too. */
  readonly process: string;
}

/** Lists the calls of this process that hold a lock or wait, for somebody who looks once a second. */
export class OwnCalls {
  readonly #parts: OwnCallsParts;

  constructor(parts: OwnCallsParts) {
    this.#parts = parts;
  }

  answer({ texts, keys }: CallsQuestion): CallsAnswer {
    const { leases, localQueue, pendingAcquires } = this.#parts;
    const held = [...leases].filter(({ isLive }) => isLive);
    const waiting = [...localQueue.waiting(), ...pendingAcquires.waiting()];
    const characters = LISTS_FIT / Math.max(1, texts.length + keys.length) / 2;
    const calls = { held, waiting, characters, time: now() };
    return {
      held: keysOf(held),
      waiting: waiting.length,
      byText: texts.map((text) => this.#withText(text, calls)),
      byKey: keys.map((key) => ofKey(key, calls)),
      queues: fitting(queuesOf(waiting), SIDE_LISTS_FIT),
      nested: fitting(nestedOf(calls), SIDE_LISTS_FIT),
    };
  }

  #withText(text: string, calls: Calls): CallLists {
    if (this.#parts.process.toLowerCase().includes(text)) return lists(calls);
    const contains = (one: string | undefined): boolean => one?.toLowerCase().includes(text) ?? false;
    const isOf = ({ label, method, template, traceId }: OwnCall): boolean =>
      [label, method, template, traceId].some(contains);
    return lists({
      ...calls,
      held: calls.held.filter((lease) => lease.keys.some(contains) || isOf(heldCall(lease, calls.time))),
      waiting: calls.waiting.filter((wait) => contains(wait.key) || isOf(waitingCall(wait, calls.time))),
    });
  }
}

/** Calls, and how many characters a list of them may take. */
interface Calls {
  readonly held: readonly Lease[];
  readonly waiting: readonly WaitingCall[];
  readonly characters: number;
  /** One moment for a whole answer, by the monotonic clock: those who came together stay in their order. */
  readonly time: number;
}

const keysOf = (leases: readonly Lease[]): number => leases.reduce((sum, { keys }) => sum + keys.length, 0);

const ofKey = (key: string, { held, waiting, ...rest }: Calls): CallLists =>
  lists({
    ...rest,
    held: held.filter(({ keys }) => keys.includes(key)),
    waiting: waiting.filter((wait) => wait.key === key),
  });

function lists({ held, waiting, characters, time }: Calls): CallLists {
  const list = (total: number, calls: readonly OwnCall[]): CallList => ({ total, items: fitting(calls, characters) });
  const longestHeld = firstOf(held, (one, other) => one.heldSince - other.heldSince);
  const longestWaiting = firstOf(waiting, (one, other) => one.startedAt - other.startedAt);
  return {
    held: list(
      keysOf(held),
      longestHeld.map((lease) => heldCall(lease, time)),
    ),
    waiting: list(
      waiting.length,
      longestWaiting.map((wait) => waitingCall(wait, time)),
    ),
  };
}

function firstOf<Item>(items: readonly Item[], compare: (one: Item, other: Item) => number): readonly Item[] {
  const first = new First(MOST_CALLS, compare);
  for (const item of items) first.add(item);
  return first.items();
}

function heldCall(lease: Lease, time: number): OwnCall {
  const { fence, label, traceparent } = lease.details!;
  const leftMs = lease.endsAt - time;
  return {
    keys: lease.keys,
    mode: modeOf(lease.sharing),
    ms: Math.round(time - lease.heldSince),
    label,
    ...siteOf(lease.site),
    traceId: traceIdIn(traceparent),
    fence,
    leaseLeftMs: Number.isFinite(leftMs) ? Math.round(leftMs) : undefined,
    isOverdue: lease.isOverdue || undefined,
  };
}

function waitingCall({ key, request, startedAt }: WaitingCall, time: number): OwnCall {
  const { id, holding, traceparent } = waitNotes(request);
  return {
    keys: [key],
    mode: modeOf(request.sharing),
    ms: Math.round(time - startedAt),
    label: request.label,
    ...siteOf(request.site),
    traceId: traceIdIn(traceparent),
    id,
    holds: holding?.length ? holding : undefined,
  };
}

const siteOf = (site: CallSite | undefined): Partial<CallSite> =>
  site ? { method: site.method, template: site.template } : {};

/** The id of the trace in a `traceparent` of W3C Trace Context: `version-trace-span-flags`. */
const traceIdIn = (traceparent: string | undefined): string | undefined => traceparent?.split('-')[1];

/** The keys that most calls wait for, and how many. */
function queuesOf(waiting: readonly WaitingCall[]): (readonly [string, number])[] {
  const counts = new Map<string, number>();
  for (const { key } of waiting) counts.set(key, (counts.get(key) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a).slice(0, MOST_QUEUES);
}

/** Those that hold something while they wait: one for each call, with all keys that it waits for. */
function nestedOf({ waiting, time }: Calls): OwnCall[] {
  const byId = new Map<number, { readonly call: OwnCall; readonly keys: string[] }>();
  for (const wait of waiting) {
    const { id, holding = [] } = waitNotes(wait.request);
    if (id === undefined || holding.length === 0) continue;
    const known = byId.get(id);
    if (known) known.keys.push(wait.key);
    else if (byId.size < MOST_NESTED) byId.set(id, { call: waitingCall(wait, time), keys: [wait.key] });
  }
  return [...byId.values()].map(({ call, keys }) => ({ ...call, keys }));
}
