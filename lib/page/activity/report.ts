import { now } from '../../clock/deadline.js';
import type { Activity, HistoryEvent } from './activity.js';
import { SLOTS, slotAt, type SentLabel } from './label-times.js';
import type { LocalCall } from './local-calls.js';
import type {
  FilteredRows,
  KeyRows,
  ProcessReport,
  ReportQuestion,
  SentCall,
  SentEvent,
  SentList,
  SentTimes,
} from './process-report.js';
import {
  fitting,
  MOST_HISTORY,
  MOST_HOT_KEYS,
  MOST_LOSSES,
  MOST_QUEUES,
  MOST_ROWS,
  MOST_WAITING_HOLDERS,
} from './report-limits.js';

/** Most characters of the parts of a report, which is one message of 100,000 at most. */
const ROWS_FIT = 50_000;
const SIDE_LISTS_FIT = 10_000;
const TIMES_FIT = 20_000;

/** Reports what the page asks of this process. */
export class Reporter {
  readonly #activity: Activity;
  /** `host:pid`, which a filter finds too. */
  readonly #process: string;

  constructor(activity: Activity, process: string) {
    this.#activity = activity;
    this.#process = process.toLowerCase();
  }

  report({ filters, keys, slotsFrom }: ReportQuestion): ProcessReport {
    const nowMs = now();
    const { calls, acquired, losses, margins } = this.#activity;
    const [held, waiting] = [[...calls.held], [...calls.waiting]];
    const share = ROWS_FIT / Math.max(1, filters.length + keys.length) / 2;
    return {
      uptimeMs: Math.round(process.uptime() * 1000),
      held: keysOf(held),
      waiting: keysOf(waiting),
      acquiredPerSecond: acquired.perSecond(nowMs),
      lostByReason: losses.counts(nowMs),
      leaseMargin: margins.smallest(nowMs),
      rows: filters.map((filter) => this.#filtered(filter, { held, waiting, share, nowMs })),
      keyRows: keys.map((key) => this.#ofKey(key, { held, waiting, share, nowMs })),
      queues: fitting(queuesOf(waiting), SIDE_LISTS_FIT),
      waitingHolders: fitting(
        waiting
          .filter(holdsAnything)
          .slice(0, MOST_WAITING_HOLDERS)
          .map((call) => sentCall(call, nowMs)),
        SIDE_LISTS_FIT,
      ),
      times: this.times(slotsFrom, slotAt(Date.now())),
    };
  }

  /** Reports slots of times, the latest ones that fit. */
  times(from: number, to: number): SentTimes {
    const labels: SentLabel[] = [];
    let left = TIMES_FIT;
    for (let number = to; number >= Math.max(from, to - SLOTS + 1); number--) {
      const ofSlot = this.#activity.times.inSlot(number);
      left -= JSON.stringify(ofSlot).length;
      // The first one goes anyway, or it would never arrive.
      if (left < 0 && number < to) return { from: number + 1, labels };
      labels.push(...ofSlot);
    }
    return { from, labels };
  }

  #filtered(filter: string, { held, waiting, share, nowMs }: Calls): FilteredRows {
    const { hotKeys, losses } = this.#activity;
    const fits = this.#matcher(filter);
    const fitsCall = ({ event, traceId }: LocalCall): boolean => fits(event.keys, event, traceId);
    return {
      held: sentList(filter === '' ? held : held.filter(fitsCall), share, nowMs),
      waiting: sentList(filter === '' ? waiting : waiting.filter(fitsCall), share, nowMs),
      hotKeys: fitting(
        hotKeys
          .top(MOST_HOT_KEYS, nowMs, (key, { label }) => fits([key], { label }))
          .map(([key, counts]) => ({ key, ...counts, waitedMs: Math.round(counts.waitedMs) })),
        SIDE_LISTS_FIT,
      ),
      losses: fitting(
        losses
          .latest(nowMs)
          .filter((loss) => fits(loss.keys, loss, loss.traceId))
          .slice(0, MOST_LOSSES)
          .map((loss) => sentEvent(loss, nowMs)),
        SIDE_LISTS_FIT,
      ),
    };
  }

  #ofKey(key: string, { held, waiting, share, nowMs }: Calls): KeyRows {
    const isOfKey = ({ event }: LocalCall): boolean => event.keys.includes(key);
    const history = this.#activity.history.of(key).slice(0, MOST_HISTORY);
    return {
      held: sentList(held.filter(isOfKey), share, nowMs),
      waiting: sentList(waiting.filter(isOfKey), share, nowMs),
      history: fitting(
        history.map((event) => sentEvent(event, nowMs)),
        SIDE_LISTS_FIT,
      ),
    };
  }

  /** Makes a function that tells whether the filter is part of a key, or of what is known about its caller. */
  #matcher(filter: string): (keys: readonly string[], caller: Partial<HistoryEvent>, traceId?: string) => boolean {
    if (this.#process.includes(filter)) return () => true;
    const contains = (text: string | undefined): boolean => text?.toLowerCase().includes(filter) ?? false;
    return (keys, { label, template, method }, traceId) =>
      keys.some(contains) || [label, template, method, traceId].some(contains);
  }
}

/** The calls to report, and how. */
interface Calls {
  readonly held: readonly LocalCall[];
  readonly waiting: readonly LocalCall[];
  /** Most characters of a list. */
  readonly share: number;
  readonly nowMs: number;
}

const keysOf = (calls: readonly LocalCall[]): number => calls.reduce((sum, { event }) => sum + event.keys.length, 0);

const holdsAnything = ({ event }: LocalCall): boolean => event.type === 'queued' && event.holding.length > 0;

function sentList(calls: readonly LocalCall[], characters: number, nowMs: number): SentList<SentCall> {
  const first = calls.slice(0, MOST_ROWS).map((call) => sentCall(call, nowMs));
  return { total: keysOf(calls), items: fitting(first, characters) };
}

function sentCall({ event, traceId, since, leaseEndsAt, isOverdue }: LocalCall, nowMs: number): SentCall {
  const { id, keys, label, template, method, mode } = event;
  const ms = Math.round(nowMs - since);
  const call = { id, keys, label, template, method, mode, traceId };
  if (event.type === 'queued') return { ...call, ms, holds: event.holding.length > 0 ? event.holding : undefined };
  const leaseLeftMs = Number.isFinite(leaseEndsAt) ? Math.round(leaseEndsAt - nowMs) : undefined;
  return { ...call, ms, fence: event.fence, leaseLeftMs, isOverdue: isOverdue || undefined };
}

function sentEvent({ at, waitedMs, heldMs, ...event }: HistoryEvent, nowMs: number): SentEvent {
  const rounded = (ms: number | undefined): number | undefined => ms && Math.round(ms * 10) / 10;
  return { ...event, agoMs: Math.round(nowMs - at), waitedMs: rounded(waitedMs), heldMs: rounded(heldMs) };
}

/** The keys that most calls wait for, and how many. */
function queuesOf(waiting: readonly LocalCall[]): (readonly [string, number])[] {
  const counts = new Map<string, number>();
  for (const { event } of waiting) for (const key of event.keys) counts.set(key, (counts.get(key) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a).slice(0, MOST_QUEUES);
}
