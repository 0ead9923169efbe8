/** How long a generation of counts lasts, in ms, and how many there are. */
const MINUTE_MS = 60_000;
const MINUTES = 5;

/** A generation that has so many keys keeps the hottest half. */
const MOST_KEYS = 512;

/** What happened to one key. */
export interface KeyCounts {
  acquired: number;
  timeouts: number;
  /** How long its callers waited, all together, in ms. */
  waitedMs: number;
  /** The label of its latest caller. */
  label: string | undefined;
}

/** Finds the keys that are wanted most, in bounded memory: counts of a key that was cold for long may be too small. */
export class HotKeys {
  readonly #minutes: { readonly number: number; counts: Map<string, KeyCounts> }[] = [];

  /** Returns the counts of a key for this minute, to be increased. */
  of(key: string, nowMs: number): KeyCounts {
    const minute = this.#minuteAt(nowMs);
    let counts = minute.counts.get(key);
    if (counts) return counts;
    if (minute.counts.size >= MOST_KEYS) minute.counts = new Map(hottest(minute.counts, MOST_KEYS / 2));
    minute.counts.set(key, (counts = { acquired: 0, timeouts: 0, waitedMs: 0, label: undefined }));
    return counts;
  }

  /** Returns the hottest keys of the last five minutes that fit, the hottest first. */
  top(most: number, nowMs: number, fits: (key: string, counts: KeyCounts) => boolean): [string, KeyCounts][] {
    this.#minuteAt(nowMs);
    const sums = new Map<string, KeyCounts>();
    for (const { counts } of this.#minutes) {
      for (const [key, one] of counts) addTo(sums, key, one);
    }
    for (const [key, counts] of sums) if (!fits(key, counts)) sums.delete(key);
    return hottest(sums, most);
  }

  #minuteAt(nowMs: number): { counts: Map<string, KeyCounts> } {
    const number = Math.floor(nowMs / MINUTE_MS);
    const latest = this.#minutes.at(-1);
    if (latest && latest.number >= number) return latest;
    const minute = { number, counts: new Map<string, KeyCounts>() };
    this.#minutes.push(minute);
    while (this.#minutes[0]!.number <= number - MINUTES) this.#minutes.shift();
    return minute;
  }
}

/** Adds the counts of a key to those of the same key. */
export function addTo(sums: Map<string, KeyCounts>, key: string, counts: KeyCounts): void {
  const sum = sums.get(key);
  if (!sum) return void sums.set(key, { ...counts });
  sum.acquired += counts.acquired;
  sum.timeouts += counts.timeouts;
  sum.waitedMs += counts.waitedMs;
  sum.label = counts.label ?? sum.label;
}

/** The keys that were waited for most; among those that were not, the ones that were acquired most often. */
export function hottest(counts: ReadonlyMap<string, KeyCounts>, most: number): [string, KeyCounts][] {
  return [...counts]
    .sort(([, a], [, b]) => b.waitedMs - a.waitedMs || b.timeouts - a.timeouts || b.acquired - a.acquired)
    .slice(0, most);
}
