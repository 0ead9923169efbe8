import { now } from '../../clock/deadline.js';
import { TimeWheel } from '../../clock/time-wheel.js';
import type { AcquireCommand } from '../lock-store.js';

/**
 * How long a refused caller waits before it asks again, in ms: about the first delay, a little longer each time, up
 * to the longest. Chance makes it up to half longer or shorter, so that callers that collided do not collide again.
 */
const FIRST_DELAY_MS = 40;
const LONGEST_DELAY_MS = 100;
const DELAY_GROWS_BY_MS = 10;
const CHANCE = 0.5;

/**
 * The same in round trips, for long distances: how much longer with each try, and the longest. Callers collide for as
 * long as it takes to learn of it and to release what a minority granted. If all of them together ask more often than
 * that, nobody gets in. A caller that has failed for some time is one of many, so it asks less often.
 */
const DELAY_GROWS_BY_TRIPS = 0.5;
const LONGEST_DELAY_TRIPS = 10;

/** The first delay of a caller that does not wait, after a collision, in ms and in round trips. It doubles. */
const COLLISION_DELAY_MS = 3;
const COLLISION_DELAY_TRIPS = 2;

/** Long enough for every waiter near by to ask once more, in ms. */
const TURN_OF_OTHERS_MS = LONGEST_DELAY_MS * (1 + CHANCE) + 10;

/** How far one slow reply moves the estimate of a round trip: by this part of the difference, or of the estimate. */
const SMOOTHING = 1 / 8;

/**
 * How long a process whose next caller is ready leaves the key to unknown waiters, in ms: between this and three
 * times as long.
 */
const GAP_MS = 2;

/**
 * How long before the end of its wait a caller asks for the last time, in ms and in round trips, to get the reply in
 * time.
 */
const LAST_TRY_MS = 5;
const LAST_TRY_TRIPS = 1.5;

/** A time in which a key is left to other processes. */
interface Gap {
  readonly until: number;
}

/**
 * Decides when a caller asks. A quorum has no common queue: waiters poll, and one enters when the key happens to be
 * free. So a process that released a key does not acquire it again at once when other processes wait, or may wait
 * unheard, or when its own callers would leave no gap at all.
 */
export class QuorumTurns {
  readonly #tries = new WeakMap<AcquireCommand, number>();
  readonly #gaps = new Map<string, Gap>();
  /** About how long a majority takes to reply, in ms: the recent minimum. */
  #roundTripMs = 0;
  readonly #ends = new TimeWheel<readonly [string, Gap]>((ended) => {
    for (const [key, gap] of ended) this.#end(key, gap);
  });

  /**
   * Notes how long a majority took to reply. A shorter time counts at once, a longer one little by little, however
   * long: it may be a stall of this process or of a node.
   */
  replied(tookMs: number): void {
    const before = this.#roundTripMs;
    const slower = Math.min(tookMs - before, before);
    this.#roundTripMs = before === 0 || slower < 0 ? tookMs : before + slower * SMOOTHING;
  }

  /**
   * Returns how long a caller that was just refused must wait, in ms: not past its last try, as long as that is to
   * come.
   */
  delayOf(command: AcquireCommand): number {
    const tries = this.#tries.get(command) ?? 0;
    this.#tries.set(command, tries + 1);
    const inMs = Math.min(FIRST_DELAY_MS + tries * DELAY_GROWS_BY_MS, LONGEST_DELAY_MS);
    const inTrips = Math.min(tries * DELAY_GROWS_BY_TRIPS, LONGEST_DELAY_TRIPS);
    const delayMs = spread(Math.max(inMs, inTrips * this.#roundTripMs));
    const lastTryMs = this.#lastTryOf(command);
    return lastTryMs > 0 ? Math.min(delayMs, lastTryMs) : delayMs;
  }

  /** Returns how long a caller that does not wait pauses after so many collisions, in ms. */
  delayAfterCollision(collisions: number): number {
    const firstMs = Math.max(COLLISION_DELAY_MS, COLLISION_DELAY_TRIPS * this.#roundTripMs);
    return spread(firstMs * 2 ** (collisions - 1));
  }

  /**
   * Returns how long the keys are still left to others, in ms; for a caller whose wait ends before, until its last
   * try.
   */
  othersTurn(command: AcquireCommand): number {
    if (this.#gaps.size === 0) return 0;
    const ends = command.keys.map((key) => this.#gaps.get(key)?.until ?? 0);
    return Math.max(0, Math.min(Math.max(...ends) - now(), this.#lastTryOf(command)));
  }

  #lastTryOf({ waitsUntil = Infinity }: AcquireCommand): number {
    return waitsUntil - now() - LAST_TRY_MS - this.#roundTripMs * LAST_TRY_TRIPS;
  }

  /** Leaves the keys of a lock to others, because it is being released. `released` settles when they are free. */
  leave(keys: readonly string[], contended: boolean, released: Promise<unknown>): void {
    const gap = { until: now() + (contended ? TURN_OF_OTHERS_MS : GAP_MS * (1 + 2 * Math.random())) };
    for (const key of keys) {
      this.#gaps.set(key, gap);
      if (contended) this.#ends.add(Math.ceil(gap.until), [key, gap]);
    }
    // A caller that comes when the key is known to be free was not waiting here: that alone leaves a gap.
    const end = () => keys.forEach((key) => this.#end(key, gap));
    if (!contended) released.then(end, end);
  }

  close(): void {
    this.#ends.clear();
  }

  #end(key: string, gap: Gap): void {
    if (this.#gaps.get(key) === gap) this.#gaps.delete(key);
  }
}

const spread = (ms: number): number => ms * (1 - CHANCE + 2 * CHANCE * Math.random());
