/** Buckets of an octave: the middle of a bucket is within 10 % of each duration in it. */
const BUCKETS_PER_OCTAVE = 4;

/** The first bucket ends at 2^-4 ms, the last begins at 2^22 ms: 70 minutes. */
const FIRST_OCTAVE = -4;
const LAST_OCTAVE = 22;

const BUCKETS = (LAST_OCTAVE - FIRST_OCTAVE) * BUCKETS_PER_OCTAVE + 2;

/** The counts of a histogram without its empty buckets: bucket, count, bucket, count, and so on. */
export type SparseCounts = readonly number[];

/**
 * Counts durations in buckets that are the same in all processes, so that the histograms of several processes and
 * times can be added.
 */
export class Histogram {
  readonly #counts = new Uint32Array(BUCKETS);
  #count = 0;
  #sum = 0;

  /** How many durations there are. */
  get count(): number {
    return this.#count;
  }

  /** All of them together, in ms. */
  get sum(): number {
    return this.#sum;
  }

  /** Adds a duration in ms. */
  add(durationMs: number): void {
    this.#counts[bucketOf(durationMs)]!++;
    this.#count++;
    this.#sum += durationMs;
  }

  /** Adds the counts of another histogram, and the sum of its durations in ms. */
  addCounts(counts: SparseCounts, sum: number): void {
    for (let at = 0; at + 1 < counts.length; at += 2) {
      const [bucket, count] = [counts[at]!, counts[at + 1]!];
      // Another version of this library may have sent them.
      if (!(bucket in this.#counts)) continue;
      this.#counts[bucket]! += count;
      this.#count += count;
    }
    this.#sum += sum;
  }

  /** Returns the duration in ms that this share of all does not exceed; null without any. */
  quantile(share: number): number | null {
    if (this.#count === 0) return null;
    let missing = Math.ceil(share * this.#count);
    const bucket = this.#counts.findIndex((count) => (missing -= count) <= 0);
    return middleOf(bucket);
  }

  toSparse(): SparseCounts {
    const sparse: number[] = [];
    this.#counts.forEach((count, bucket) => count > 0 && sparse.push(bucket, count));
    return sparse;
  }
}

function bucketOf(durationMs: number): number {
  const bucket = 1 + Math.floor((Math.log2(durationMs) - FIRST_OCTAVE) * BUCKETS_PER_OCTAVE);
  return Math.min(Math.max(0, bucket), BUCKETS - 1);
}

/** The middle of a bucket on the logarithmic scale, in ms, rounded to three digits. */
function middleOf(bucket: number): number {
  return Number((2 ** (FIRST_OCTAVE + (bucket - 0.5) / BUCKETS_PER_OCTAVE)).toPrecision(3));
}
