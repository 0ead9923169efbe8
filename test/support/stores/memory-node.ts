import { setTimeout as sleep } from 'node:timers/promises';
import {
  LockUnavailableError,
  type AcquireCommand,
  type Cancellation,
  type Granted,
  type Busy,
  type OwnedLock,
  type RenewalOutcome,
} from 'nest-redis-lock';
import { MemoryLockStore } from 'nest-redis-lock/testing';
import type { QuorumNode } from '../../../lib/store/quorum/quorum-nodes.js';

interface Faults {
  /** What the clock that its fences come from is ahead of ours, in µs; and how far off its answers are, in ms. */
  readonly aheadUs?: number;
  readonly delayMs?: number;
}

/** A node of a quorum in memory. */
export class MemoryNode extends MemoryLockStore implements QuorumNode {
  readonly #aheadUs: number;
  readonly #delayMs: number;
  #lastFence = 0;
  /** Whether it can be reached. */
  isDown = false;
  /** Whether its messages do not count as heard, though they are. */
  isUnsubscribed = false;
  /** Whether it hears of the fences of the others. */
  hearsFences = true;

  constructor({ aheadUs = 0, delayMs = 0 }: Faults = {}) {
    super();
    this.#aheadUs = aheadUs;
    this.#delayMs = delayMs;
  }

  raise(fence: number): void {
    if (this.hearsFences && !this.isDown) this.#lastFence = Math.max(this.#lastFence, fence);
  }

  override async acquire(command: AcquireCommand): Promise<Granted | Busy> {
    await this.#reached();
    const answer = await super.acquire(command);
    return answer.granted ? { ...answer, fence: this.#count(answer.fence) } : answer;
  }

  override async reserve(lock: OwnedLock): Promise<Granted | undefined> {
    await this.#reached();
    const grant = await super.reserve(lock);
    return grant && { ...grant, fence: this.#count(grant.fence) };
  }

  override async cancel(lock: Cancellation): Promise<void> {
    await this.#reached().catch(() => undefined);
    await super.cancel(lock);
  }

  override async renew(renewals: readonly OwnedLock[]): Promise<RenewalOutcome> {
    await this.#reached();
    return super.renew(renewals);
  }

  override async release(lock: OwnedLock, keepMs?: number): Promise<boolean> {
    await this.#reached();
    return super.release(lock, keepMs);
  }

  override async isLocked(key: string): Promise<boolean> {
    await this.#reached();
    return super.isLocked(key);
  }

  async #reached(): Promise<void> {
    if (this.#delayMs > 0) await sleep(this.#delayMs);
    if (this.isDown) throw new LockUnavailableError('This node is down.');
  }

  #count(fence: number): number {
    return (this.#lastFence = Math.max(this.#lastFence + 1, fence + this.#aheadUs));
  }
}
