import { now } from '../../clock/deadline.js';
import { fitting } from '../../core/list/fitting.js';
import type { Activity, HistoryEvent } from './activity.js';
import { SLOTS, slotAt, type SentLabel } from './label-times.js';
import type { FilteredPast, ProcessReport, ReportQuestion, SentEvent, SentTimes } from './process-report.js';
import { MOST_HISTORY, MOST_HOT_KEYS, MOST_LOSSES } from './report-limits.js';

/** Most characters of the parts of a report, which is one message of 100,000 at most. */
const LISTS_FIT = 70_000;
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
    const { acquired, losses, margins } = this.#activity;
    const characters = LISTS_FIT / Math.max(1, 2 * filters.length + keys.length);
    return {
      uptimeMs: Math.round(process.uptime() * 1000),
      acquiredPerSecond: acquired.perSecond(nowMs),
      lostByReason: losses.counts(nowMs),
      leaseMargin: margins.smallest(nowMs),
      byFilter: filters.map((filter) => this.#filtered(filter, characters, nowMs)),
      histories: keys.map((key) => this.#historyOf(key, characters, nowMs)),
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

  #filtered(filter: string, characters: number, nowMs: number): FilteredPast {
    const { hotKeys, losses } = this.#activity;
    const fits = this.#matcher(filter);
    const hot = hotKeys
      .top(MOST_HOT_KEYS, nowMs, (key, { label }) => fits([key], { label }))
      .map(([key, counts]) => ({ key, ...counts, waitedMs: Math.round(counts.waitedMs) }));
    const lost = losses
      .latest(nowMs)
      .filter((loss) => fits(loss.keys, loss))
      .slice(0, MOST_LOSSES)
      .map((loss) => sentEvent(loss, nowMs));
    return { hotKeys: fitting(hot, characters), losses: fitting(lost, characters) };
  }

  #historyOf(key: string, characters: number, nowMs: number): readonly SentEvent[] {
    const latest = this.#activity.history.of(key).slice(0, MOST_HISTORY);
    return fitting(
      latest.map((event) => sentEvent(event, nowMs)),
      characters,
    );
  }

  /** Makes a function that tells whether the filter is part of a key, or of what is known about its caller. */
  #matcher(filter: string): (keys: readonly string[], caller: Partial<HistoryEvent>) => boolean {
    if (this.#process.includes(filter)) return () => true;
    const contains = (text: string | undefined): boolean => text?.toLowerCase().includes(filter) ?? false;
    return (keys, { label, template, method, traceId }) =>
      keys.some(contains) || [label, template, method, traceId].some(contains);
  }
}

function sentEvent({ at, waitedMs, heldMs, ...event }: HistoryEvent, nowMs: number): SentEvent {
  const rounded = (ms: number | undefined): number | undefined => ms && Math.round(ms * 10) / 10;
  return { ...event, agoMs: Math.round(nowMs - at), waitedMs: rounded(waitedMs), heldMs: rounded(heldMs) };
}
