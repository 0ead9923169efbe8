import { now } from '../../clock/deadline.js';
import { nextTurn } from '../../clock/next-turn.js';
import { SharedTimer } from '../../clock/shared-timer.js';
import { ALIVE_MS, type Cancellation } from '../../store/lock-store.js';
import { NotAskedError, RefusedError } from '../connection/connection-errors.js';

const FIRST_RETRY_MS = 500;

/** The longest time between two attempts while Redis does not reply, in ms. */
const LONGEST_RETRY_MS = 30_000;

/**
 * The longest time between two attempts while Redis refuses them, or the app's client can't send them, in ms: nothing
 * tells when that is over.
 */
const LONGEST_HINDERED_RETRY_MS = 2_000;

/** How many are tried at a time: they hold up neither the calls of this process nor a Redis that is slow. */
const AT_ONCE = 512;

interface Orphan {
  /** The longest lease that it may have, in ms. */
  readonly leaseMs: number;
  /** Whether Redis has replied to an attempt in time. */
  isAnswered: boolean;
  /** What became of the last attempt, if Redis has refused it, or the app's client could not send it. */
  hindered: 'refused' | 'not asked' | undefined;
  /**
   * When its lease and its time in the queue are over, so that Redis has dropped it by itself. `Infinity` until Redis
   * has shown that it runs commands: before that, the command that acquires it may still lie in a buffer.
   */
  until: number;
  /** Until when its keys must stay, though nobody holds them any more; long past once Redis knows. */
  keepUntil: number;
  tryAt: number;
  delayMs: number;
  /** How many commands may have acquired it, or may still acquire it. */
  copies: number;
}

/**
 * Releases locks that Redis may or may not hold for this process, because a reply never came. Each is released by its
 * token as soon as Redis replies, and then less and less often until Redis drops it by itself: a command that
 * is stuck on a slow connection can still arrive.
 */
export class Orphans {
  readonly #release: (lock: Cancellation) => Promise<number>;
  readonly #keep: (lock: Cancellation, keepMs: number) => Promise<number>;
  /** Whether each attempt would fail at once. */
  readonly #isDown: () => boolean;
  /** In the order of their last attempts. */
  readonly #orphans = new Map<Cancellation, Orphan>();
  readonly #timer = new SharedTimer();
  #trying = false;
  /** Whether Redis could be reached again while some were tried. */
  #isBack = false;
  #isClosed = false;

  /** @param keep makes the keys of a lock stay that long, in ms, without a holder */
  constructor(
    release: (lock: Cancellation) => Promise<number>,
    keep: (lock: Cancellation, keepMs: number) => Promise<number>,
    isDown = () => false,
  ) {
    this.#release = release;
    this.#keep = keep;
    this.#isDown = isDown;
  }

  /**
   * @param copies how many commands may have acquired it, or may still arrive and acquire it
   * @param keepMs how long its keys must stay before they are released, in ms
   * @param leaseMs the longest lease that it may have, in ms
   */
  add(lock: Cancellation, copies: number, { keepMs = 0, leaseMs = lock.leaseMs } = {}): void {
    // The end of a store fails the commands in flight.
    if (this.#isClosed) return;
    const time = now();
    this.#orphans.set(lock, {
      leaseMs,
      isAnswered: false,
      hindered: undefined,
      until: Infinity,
      keepUntil: keepMs > 0 ? time + keepMs : -Infinity,
      tryAt: time + FIRST_RETRY_MS,
      delayMs: FIRST_RETRY_MS,
      copies,
    });
    this.#tryLater();
  }

  /**
   * Releases a lock now, because Redis has replied to a command that may have acquired it. That may be long after the
   * last attempt to release it, when the attempts went over another connection.
   */
  repliedLate(lock: Cancellation): void {
    if (!this.#orphans.has(lock)) this.add(lock, 1);
    this.attemptRepliedLate(lock);
    void this.#tryOne(lock);
  }

  /** Notes that Redis has replied to an attempt to release a lock that had failed by then. */
  attemptRepliedLate(lock: Cancellation): void {
    const orphan = this.#orphans.get(lock);
    if (orphan) showsLife(orphan);
  }

  /**
   * Notes that Redis has answered on a new connection. It has run what was sent to it before, or reads it no more.
   * A Redis that always replies too late gives no other sign: each connection to it is cut off before the reply.
   */
  answeredAnew(): void {
    for (const orphan of this.#orphans.values()) showsLife(orphan);
  }

  /**
   * Releases all of them now, because Redis can be reached again; but for those that it refused: that could make a
   * client connect once more, for ever.
   */
  async reconnected(): Promise<void> {
    this.#isBack = this.#trying;
    const all = [...this.#orphans];
    await this.#tryAll(all.flatMap(([lock, { hindered }]) => (hindered === 'refused' ? [] : [lock])));
  }

  /** Tries each once more, and gives up. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer.clear();
    const left = [...this.#orphans];
    this.#orphans.clear();
    await Promise.all(left.map(([lock, orphan]) => this.#giveBack(lock, orphan)));
  }

  async #tryAll(locks: readonly Cancellation[]): Promise<void> {
    if (this.#trying) return;
    this.#trying = true;
    await this.#tryInGroups(locks);
    this.#trying = false;
    if (this.#isBack) await this.reconnected();
    else this.#tryLater();
  }

  /** Those that are left when Redis goes away, or is back, are tried later. */
  async #tryInGroups(locks: readonly Cancellation[]): Promise<void> {
    for (let next = 0; next < locks.length; next += AT_ONCE) {
      if (next > 0) await nextTurn();
      if (this.#isBack || this.#isDown()) return;
      await Promise.all(locks.slice(next, next + AT_ONCE).map((lock) => this.#tryOne(lock)));
    }
  }

  async #tryOne(lock: Cancellation): Promise<void> {
    const orphan = this.#orphans.get(lock);
    if (!orphan) return;
    this.#orphans.delete(lock);
    if (isOver(orphan)) return;
    this.#orphans.set(lock, orphan);
    const freed = await this.#giveBack(lock, orphan);
    if (isOver(orphan) || (freed > 0 && --orphan.copies <= 0)) return void this.#orphans.delete(lock);
    // The delay may have grown in an outage.
    const longestMs = longestRetryMs(orphan);
    orphan.tryAt = now() + Math.min(orphan.delayMs, longestMs);
    orphan.delayMs = Math.min(2 * orphan.delayMs, longestMs);
  }

  /** Resolves with how many keys its token owned; with 0 also when that is unknown. */
  async #giveBack(lock: Cancellation, orphan: Orphan): Promise<number> {
    const keepMs = Math.ceil(orphan.keepUntil - now());
    try {
      const count = keepMs <= 0 ? await this.#release(lock) : await this.#keep(lock, keepMs);
      if (keepMs > 0 || !orphan.isAnswered) orphan.until = knownUntil(orphan.leaseMs);
      orphan.keepUntil = -Infinity;
      orphan.isAnswered = true;
      orphan.hindered = undefined;
      return count;
    } catch (error) {
      const isRefused = error instanceof RefusedError;
      orphan.hindered = isRefused ? 'refused' : error instanceof NotAskedError ? 'not asked' : undefined;
      // A refusal, which may last for hours, is an answer, too: what acquires it has been run, or been refused.
      if (isRefused && !orphan.isAnswered) {
        showsLife(orphan);
        orphan.isAnswered = true;
      }
      return 0;
    }
  }

  #tryLater(): void {
    if (this.#orphans.size === 0 || this.#timer.isSet) return;
    this.#timer.set(FIRST_RETRY_MS, () => this.#tryDue()).unref();
  }

  #tryDue(): void {
    const time = now();
    const due: Cancellation[] = [];
    for (const [lock, { until, tryAt }] of this.#orphans) {
      if (until <= time) this.#orphans.delete(lock);
      else if (tryAt <= time) due.push(lock);
    }
    void this.#tryAll(due);
  }
}

function longestRetryMs({ isAnswered, hindered }: Orphan): number {
  if (hindered) return LONGEST_HINDERED_RETRY_MS;
  return isAnswered ? Infinity : LONGEST_RETRY_MS;
}

const isOver = ({ until }: Orphan): boolean => now() >= until;

/** Notes that Redis runs commands: it drops the orphan by itself after a lease. */
function showsLife(orphan: Orphan): void {
  if (orphan.until === Infinity) orphan.until = Math.max(knownUntil(orphan.leaseMs), orphan.keepUntil);
}

/** Returns until when Redis may know a lock that it is asked for now. */
const knownUntil = (leaseMs: number): number => now() + Math.max(leaseMs, ALIVE_MS);
