import { Histogram } from '../activity/histogram.js';
import { SLOT_MS, SLOTS, slotAt, type SentSlot } from '../activity/label-times.js';
import type { SentTimes } from '../activity/process-report.js';
import type { Cut, LabelRow, Slots, Times } from '../page-snapshot.js';

const MOST_LABELS = 50;
/** More labels of one process than these are left out: it counts all but 50 as `other` itself. */
const MOST_LABELS_OF_PROCESS = 100;
/** How many labels come with series. */
const MOST_SERIES = 12;

/** Keeps what each process has reported about times, and adds it up. Processes that have ended count on. */
export class TimesBook {
  /** By process, by label, by number. */
  readonly #bySource = new Map<string, Map<string, Map<number, SentSlot>>>();
  /** The first slot of each process from which on all are known, and the last one. */
  readonly #known = new Map<string, { readonly from: number; readonly to: number }>();

  /**
   * Notes the latest slots of a process. If others are missing between those and earlier ones, these count as unknown.
   */
  noteLatest(source: string, times: SentTimes, nowMs: number): void {
    const known = this.#known.get(source);
    const isConnected = known !== undefined && times.from <= known.to + 1;
    this.#known.set(source, { from: isConnected ? Math.min(known.from, times.from) : times.from, to: slotAt(nowMs) });
    this.#add(source, times);
  }

  /** Notes the slots of a process before those that are known. */
  noteOlder(source: string, times: SentTimes): void {
    const known = this.#known.get(source);
    if (known) this.#known.set(source, { ...known, from: Math.min(known.from, times.from) });
    this.#add(source, times);
  }

  /** Returns before which slot a process is to be asked for more; undefined when all is known. */
  missingBefore(source: string, nowMs: number): number | undefined {
    const known = this.#known.get(source);
    return known && known.from > slotAt(nowMs) - SLOTS + 1 ? known.from : undefined;
  }

  /** Forgets slots that are over, and processes that have ended and whose slots are. */
  forget(nowMs: number, living: ReadonlySet<string>): void {
    const first = slotAt(nowMs) - SLOTS + 1;
    for (const [source, labels] of this.#bySource) {
      for (const [label, slots] of labels) {
        for (const number of slots.keys()) if (number < first) slots.delete(number);
        if (slots.size === 0) labels.delete(label);
      }
      if (labels.size > 0 || living.has(source)) continue;
      this.#bySource.delete(source);
      this.#known.delete(source);
    }
  }

  /**
   * Slots that are over, or still to come by the clock here, would stay: a clock may be wrong, and any client may send.
   */
  #add(source: string, { labels }: SentTimes): void {
    const last = this.#known.get(source)?.to ?? -Infinity;
    let byLabel = this.#bySource.get(source);
    if (!byLabel) this.#bySource.set(source, (byLabel = new Map<string, Map<number, SentSlot>>()));
    for (const [label, slot] of labels) {
      const slots = byLabel.get(label);
      if (slot[0] <= last - SLOTS || slot[0] > last + 1) continue;
      if (!slots && byLabel.size >= MOST_LABELS_OF_PROCESS) continue;
      if (slots) slots.set(slot[0], slot);
      else byLabel.set(label, new Map([[slot[0], slot]]));
    }
  }

  slots(nowMs: number): Slots {
    const last = slotAt(nowMs);
    const startsAt = Array.from({ length: SLOTS }, (_, at) => (last - SLOTS + 1 + at) * SLOT_MS);
    return { stepMs: SLOT_MS, count: SLOTS, startsAt };
  }

  /** Adds up all labels; the one with the longest waits in all first. */
  labels(nowMs: number): Cut<LabelRow> {
    const byLabel = new Map<string, SentSlot[]>();
    for (const labels of this.#bySource.values()) {
      for (const [label, slots] of labels) byLabel.set(label, [...(byLabel.get(label) ?? []), ...slots.values()]);
    }
    const sorted = [...byLabel].sort(([, a], [, b]) => waited(b) - waited(a) || b.length - a.length);
    const items = sorted
      .slice(0, MOST_LABELS)
      .map(([label, slots], rank) => labelRow(label, slots, rank < MOST_SERIES ? slotAt(nowMs) : undefined));
    return { total: byLabel.size, items };
  }
}

const waited = (slots: readonly SentSlot[]): number => slots.reduce((sum, slot) => sum + slot[5], 0);

/** @param last the last slot of the series; undefined for none */
function labelRow(label: string, slots: readonly SentSlot[], last: number | undefined): LabelRow {
  const sum = (of: 1 | 2 | 3 | 4): number => slots.reduce((sum, slot) => sum + slot[of], 0);
  const wait = timesOf(slots, 5, last);
  return {
    label,
    acquired: wait.count,
    timeouts: sum(1),
    unavailable: sum(2),
    aborted: sum(3),
    lost: sum(4),
    wait,
    hold: timesOf(slots, 7, last),
  };
}

/** @param at where the sum is in a slot; the counts are behind it */
function timesOf(slots: readonly SentSlot[], at: 5 | 7, last: number | undefined): Times {
  const all = added(slots, at);
  const series: Times['series'] = { p50: [], p99: [] };
  return {
    count: all.count,
    sum: all.sum,
    p50: all.quantile(0.5),
    p99: all.quantile(0.99),
    series: last === undefined ? series : seriesOf(slots, at, last),
  };
}

function seriesOf(slots: readonly SentSlot[], at: 5 | 7, last: number): Times['series'] {
  const histograms = Array.from({ length: SLOTS }, (_, place) => {
    const number = last - SLOTS + 1 + place;
    const ofSlot = slots.filter((slot) => slot[0] === number);
    return ofSlot.length > 0 ? added(ofSlot, at) : undefined;
  });
  const series = (share: number) => histograms.map((one) => one?.quantile(share) ?? null);
  return { p50: series(0.5), p99: series(0.99) };
}

function added(slots: readonly SentSlot[], at: 5 | 7): Histogram {
  const histogram = new Histogram();
  for (const slot of slots) histogram.addCounts(slot[at === 5 ? 6 : 8], slot[at]);
  return histogram;
}
