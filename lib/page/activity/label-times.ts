import { Histogram, type SparseCounts } from './histogram.js';

/** How long a slot is, in ms, and how many are kept: ten minutes. */
export const SLOT_MS = 10_000;
export const SLOTS = 60;

/** More labels than these count as `other`. */
const MOST_LABELS = 50;
const OTHER = 'other';

/** The calls of one label in one slot of time. */
export interface Slot {
  /** Slots are numbered by the time of day, so that those of several processes are the same. */
  readonly number: number;
  timeouts: number;
  unavailable: number;
  aborted: number;
  lost: number;
  readonly wait: Histogram;
  readonly hold: Histogram;
}

/**
 * A slot as it is sent to another process: number, four counts, sum and buckets of `wait`, sum and buckets of `hold`.
 */
export type SentSlot = readonly [
  ...[number: number, timeouts: number, unavailable: number, aborted: number, lost: number],
  ...[waitSum: number, wait: SparseCounts, holdSum: number, hold: SparseCounts],
];

/** A slot of a label. */
export type SentLabel = readonly [label: string, slot: SentSlot];

export const slotAt = (timeMs: number): number => Math.floor(timeMs / SLOT_MS);

/** Counts the calls of each label, and how long they waited and held, in slots of ten seconds. */
export class LabelTimes {
  readonly #labels = new Map<string, Slot[]>();

  /** Returns the slot of a label for this moment, to be added to. */
  at(label: string | undefined, nowMs: number): Slot {
    const number = slotAt(nowMs);
    const slots = this.#slotsOf(label ?? OTHER, number);
    const latest = slots.at(-1);
    if (latest && latest.number >= number) return latest;
    const slot = newSlot(number);
    slots.push(slot);
    if (slots.length > SLOTS) slots.shift();
    return slot;
  }

  /** Returns one slot of each label that has it. */
  inSlot(number: number): SentLabel[] {
    const labels: SentLabel[] = [];
    for (const [label, slots] of this.#labels) {
      // The slots that are asked for are mostly the last ones.
      const slot = slots.findLast((one) => one.number <= number);
      if (slot?.number === number) labels.push([label, toSent(slot)]);
    }
    return labels;
  }

  #slotsOf(label: string, number: number): Slot[] {
    const known = this.#labels.get(label);
    if (known) return known;
    if (this.#labels.size >= MOST_LABELS) this.#forgetBefore(number - SLOTS);
    if (this.#labels.size >= MOST_LABELS && label !== OTHER) return this.#slotsOf(OTHER, number);
    const slots: Slot[] = [];
    this.#labels.set(label, slots);
    return slots;
  }

  #forgetBefore(number: number): void {
    for (const [label, slots] of this.#labels) if ((slots.at(-1)?.number ?? 0) <= number) this.#labels.delete(label);
  }
}

function newSlot(number: number): Slot {
  return { number, timeouts: 0, unavailable: 0, aborted: 0, lost: 0, wait: new Histogram(), hold: new Histogram() };
}

function toSent({ number, timeouts, unavailable, aborted, lost, wait, hold }: Slot): SentSlot {
  const sums = [wait, hold].map(({ sum }) => Math.round(sum)) as [number, number];
  return [number, timeouts, unavailable, aborted, lost, sums[0], wait.toSparse(), sums[1], hold.toSparse()];
}
