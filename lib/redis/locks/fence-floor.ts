import { now } from '../../clock/deadline.js';
import { SharedTimer } from '../../clock/shared-timer.js';
import type { Connection } from '../connection/connection.js';
import { bulk } from '../wire/resp.js';

/** How often to advance the fence counter to the server's time at least, while locks are acquired. */
const ADVANCE_EVERY_MS = 1000;

/**
 * The same on the nodes of a quorum. A lock that ended on one node without a word is followed by one of another node,
 * and only the clocks are left to compare.
 */
const ADVANCE_NODE_EVERY_MS = 50;

/**
 * The operations that advance the counter: to the time, or at least to a number. They have neither a token nor a
 * reply.
 */
const CLOCK = bulk('clock') + bulk('');
const RAISE = bulk('raise') + bulk('');

/** How long a new floor may wait for a call that carries it, in ms. */
const RAISE_WITHIN_MS = 10;

/**
 * Keeps the fence counter of a server near the server's time, and above every fence that `raise` was given: a quorum
 * and a cluster give the fences of other nodes and slots. See the locks script.
 */
export class FenceFloor {
  readonly #redis: Connection;
  readonly #advanceEveryMs: number;
  readonly #sendAlone: () => void;
  #advancedAt = -Infinity;
  #advancedInEpoch = -1;
  /** Every later fence must be larger than this number; and the number that the server knows, or was sent. */
  #floor = 0;
  #sent = 0;
  /** When the server must be sent the floor at the latest, on our clock. */
  #raiseBy = 0;
  readonly #raising = new SharedTimer();

  /** @param sendAlone sends a call that has no other operations */
  constructor(redis: Connection, isNode: boolean, sendAlone: () => void) {
    this.#redis = redis;
    this.#advanceEveryMs = isNode ? ADVANCE_NODE_EVERY_MS : ADVANCE_EVERY_MS;
    this.#sendAlone = sendAlone;
  }

  /**
   * Makes every later fence larger than this one. The next call carries the floor, or one of its own a moment later.
   */
  raise(fence: number): void {
    if (fence <= this.#floor) return;
    if (this.#sent >= this.#floor) this.#raiseBy = now() + RAISE_WITHIN_MS;
    this.#floor = fence;
    if (this.#sent < fence && !this.#raising.isSet) this.#raiseAfter(RAISE_WITHIN_MS);
  }

  /**
   * Notes that the server gave this fence: its counter is there already. In a quorum that is mostly so on all nodes. By
   * hand, a raise with each release makes an uncontended lock a quarter slower.
   */
  gave(fence: number): void {
    if (fence > this.#sent) this.#sent = fence;
  }

  /**
   * Returns the encoded operation that the next call must begin with; an empty text if it needs none.
   *
   * @param resent whether the call was sent before: this may be another server
   */
  nextOperation(resent: boolean): string {
    const operation = this.#isAdvanceDue() || resent ? CLOCK : this.#sent < this.#floor ? RAISE : undefined;
    if (!operation) return '';
    this.#sent = this.#floor;
    return operation + bulk(this.#floor);
  }

  /** Forgets what the server was sent, because a call failed. */
  forget(): void {
    this.#advancedAt = -Infinity;
    this.#sent = 0;
  }

  close(): void {
    this.#raising.clear();
  }

  #raiseAfter(ms: number): void {
    this.#raising.set(ms, () => this.#raiseAlone()).unref();
  }

  #raiseAlone(): void {
    if (this.#sent >= this.#floor) return;
    // A call may have carried the floor that the timer was for, and this is a later one.
    const leftMs = this.#raiseBy - now();
    if (leftMs > 0) this.#raiseAfter(leftMs);
    else this.#sendAlone();
  }

  /** Whether some time has passed, or this may be another server than before. */
  #isAdvanceDue(): boolean {
    const time = now();
    const { epoch } = this.#redis;
    if (epoch === this.#advancedInEpoch && time < this.#advancedAt + this.#advanceEveryMs) return false;
    this.#advancedInEpoch = epoch;
    this.#advancedAt = time;
    return true;
  }
}
