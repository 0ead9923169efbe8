import { now } from '../../clock/deadline.js';
import { TimeWheel } from '../../clock/time-wheel.js';
import type { AcquireCommand } from '../lock-store.js';

/**
 * How long a caller that was refused waits before it asks again, in ms: about this long at first, and a little longer each time, up to
 * the second; half as much more or less by chance, so that callers who got in each other's way do not meet again.
 */
const FIRST_DELAY_MS = 40;
const LONGEST_DELAY_MS = 100;
const DELAY_GROWS_BY_MS = 10;
const CHANCE = 0.5;

/**
 * The same in round trips, over long distances: so much more with each try, up to so many. Callers get in each other's way for as long as it takes to
 * hear of it and to give back what a minority granted: if all of them together ask more often than that, nobody gets in. Who has tried in vain for some time
 * is one of many.
 */
const DELAY_GROWS_BY_TRIPS = 0.5;
const LONGEST_DELAY_TRIPS = 10;

/** Long enough for everybody who waits near by to have asked once more, in ms. */
const TURN_OF_OTHERS_MS = LONGEST_DELAY_MS * (1 + CHANCE) + 10;

/** How far one answer that took longer than the others moves what counts as a round trip. */
const SMOOTHING = 1 / 8;

/** What a process whose next caller is ready leaves to others who may wait unheard, in ms: between this and three times as much. */
const GAP_MS = 2;

/** So long before its wait is over a caller asks for the last time, in ms and in round trips: so that it hears the answer in time. */
const LAST_TRY_MS = 5;
const LAST_TRY_TRIPS = 1.5;

/** A moment in which others may take a key. */
interface Gap {
  readonly until: number;
}

/**
 * When who asks. A quorum has no common queue: whoever waits asks again and again, and is in luck when the key is free at that moment. So a
 * process that gave a key back does not take it again at once, when others are known to wait, or when its own callers would leave no
 * gap at all.
 */
export class QuorumTurns {
  readonly #tries = new WeakMap<AcquireCommand, number>();
  readonly #gaps = new Map<string, Gap>();
  /** About how long a majority takes to answer, in ms: the least of late. */
  #roundTripMs = 0;
  readonly #ends = new TimeWheel<readonly [string, Gap]>((ended) => {
    for (const [key, gap] of ended) this.#end(key, gap);
  });

  /** A majority took so long to answer. What is shorter than before counts at once, what is longer little by little: it may have been a stall of ours. */
  answered(tookMs: number): void {
    const before = this.#roundTripMs;
    this.#roundTripMs = before === 0 || tookMs < before ? tookMs : before + (tookMs - before) * SMOOTHING;
  }

  /** How long a caller that was refused just now is to wait, in ms: not past its last try, while that is to come. */
  delayOf(command: AcquireCommand): number {
    const tries = this.#tries.get(command) ?? 0;
    this.#tries.set(command, tries + 1);
    const inMs = Math.min(FIRST_DELAY_MS + tries * DELAY_GROWS_BY_MS, LONGEST_DELAY_MS);
    const inTrips = Math.min(tries * DELAY_GROWS_BY_TRIPS, LONGEST_DELAY_TRIPS);
    const delayMs = spread(Math.max(inMs, inTrips * this.#roundTripMs));
    const lastTryMs = this.#lastTryOf(command);
    return lastTryMs > 0 ? Math.min(delayMs, lastTryMs) : delayMs;
  }

  /** How long it is still the turn of others, in ms; for a caller whose wait is over before, until its last try. */
  othersTurn(command: AcquireCommand): number {
    if (this.#gaps.size === 0) return 0;
    const ends = command.keys.map((key) => this.#gaps.get(key)?.until ?? 0);
    return Math.max(0, Math.min(Math.max(...ends) - now(), this.#lastTryOf(command)));
  }

  #lastTryOf({ waitsUntil = Infinity }: AcquireCommand): number {
    return waitsUntil - now() - LAST_TRY_MS - this.#roundTripMs * LAST_TRY_TRIPS;
  }

  /** A lock is being given back. Resolves when its keys are free. */
  leave(keys: readonly string[], wanted: boolean, released: Promise<unknown>): void {
    const gap = { until: now() + (wanted ? TURN_OF_OTHERS_MS : GAP_MS * (1 + 2 * Math.random())) };
    for (const key of keys) {
      this.#gaps.set(key, gap);
      if (wanted) this.#ends.add(Math.ceil(gap.until), [key, gap]);
    }
    // Who comes when the key is known to be free was not waiting here: that alone leaves a gap.
    const end = () => keys.forEach((key) => this.#end(key, gap));
    if (!wanted) released.then(end, end);
  }

  close(): void {
    this.#ends.clear();
  }

  #end(key: string, gap: Gap): void {
    if (this.#gaps.get(key) === gap) this.#gaps.delete(key);
  }
}

const spread = (ms: number): number => ms * (1 - CHANCE + 2 * CHANCE * Math.random());
