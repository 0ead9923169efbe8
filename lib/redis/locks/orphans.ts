import { now } from '../../clock/deadline.js';
import { atRoot } from '../../clock/root-context.js';
import { ALIVE_MS, type Cancellation } from '../../store/lock-store.js';

const FIRST_RETRY_MS = 500;

/** The longest time between two attempts while Redis does not reply, in ms. */
const LONGEST_RETRY_MS = 30_000;

interface Orphan {
  /** The longest lease that it may have, in ms. */
  readonly leaseMs: number;
  /** Whether Redis has replied to an attempt. Until then, the command that acquires it may still lie in a buffer. */
  isAnswered: boolean;
  /** When its lease and its time in the queue are over: once Redis has replied, it has dropped it by itself by then. */
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
  readonly #orphans = new Map<Cancellation, Orphan>();
  #timer: NodeJS.Timeout | undefined;
  #trying = false;
  /** Whether Redis could be reached again while some were tried. */
  #isBack = false;
  #isClosed = false;

  /** @param keep makes the keys of a lock stay that long, in ms, without a holder */
  constructor(
    release: (lock: Cancellation) => Promise<number>,
    keep: (lock: Cancellation, keepMs: number) => Promise<number>,
  ) {
    this.#release = release;
    this.#keep = keep;
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
      until: Math.max(knownUntil(leaseMs), time + keepMs),
      keepUntil: time + keepMs,
      tryAt: time + FIRST_RETRY_MS,
      delayMs: FIRST_RETRY_MS,
      copies,
    });
    this.#tryLater();
  }

  /** Releases a lock now, if it is one of them, because Redis has replied to a command that may have acquired it. */
  repliedLate(lock: Cancellation): void {
    void this.#tryOne(lock);
  }

  /** Releases all of them now, because Redis can be reached again. */
  async reconnected(): Promise<void> {
    this.#isBack = this.#trying;
    await this.#tryAll([...this.#orphans.keys()]);
  }

  /** Tries each once more, and gives up. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    const left = [...this.#orphans];
    this.#orphans.clear();
    await Promise.all(left.map(([lock, orphan]) => this.#giveBack(lock, orphan)));
  }

  async #tryAll(locks: readonly Cancellation[]): Promise<void> {
    if (this.#trying) return;
    this.#trying = true;
    await Promise.all(locks.map((lock) => this.#tryOne(lock)));
    this.#trying = false;
    if (this.#isBack) await this.reconnected();
    else this.#tryLater();
  }

  async #tryOne(lock: Cancellation): Promise<void> {
    const orphan = this.#orphans.get(lock);
    if (!orphan) return;
    const freed = isOver(orphan) ? 0 : await this.#giveBack(lock, orphan);
    if (isOver(orphan) || (freed > 0 && --orphan.copies <= 0)) return void this.#orphans.delete(lock);
    orphan.tryAt = now() + orphan.delayMs;
    orphan.delayMs = Math.min(2 * orphan.delayMs, orphan.isAnswered ? Infinity : LONGEST_RETRY_MS);
  }

  /** Resolves with how many keys its token owned; with 0 also when that is unknown. */
  async #giveBack(lock: Cancellation, orphan: Orphan): Promise<number> {
    const keepMs = Math.ceil(orphan.keepUntil - now());
    try {
      const count = keepMs <= 0 ? await this.#release(lock) : await this.#keep(lock, keepMs);
      if (keepMs > 0 || !orphan.isAnswered) orphan.until = knownUntil(orphan.leaseMs);
      orphan.keepUntil = -Infinity;
      orphan.isAnswered = true;
      return count;
    } catch {
      return 0;
    }
  }

  #tryLater(): void {
    if (this.#orphans.size === 0 || this.#timer) return;
    this.#timer = atRoot(() => setTimeout(() => this.#tryDue(), FIRST_RETRY_MS).unref());
  }

  #tryDue(): void {
    this.#timer = undefined;
    const due = [...this.#orphans].filter(([, orphan]) => orphan.tryAt <= now() || isOver(orphan));
    void this.#tryAll(due.map(([lock]) => lock));
  }
}

const isOver = ({ isAnswered, until }: Orphan): boolean => isAnswered && now() >= until;

/** Returns until when Redis may know a lock that it is asked for now. */
const knownUntil = (leaseMs: number): number => now() + Math.max(leaseMs, ALIVE_MS);
