import type {
  AcquireCommand,
  Cancellation,
  ForceUnlockOptions,
  Granted,
  Busy,
  KeyView,
  LockDetails,
  LockStore,
  OwnedLock,
  RenewalOutcome,
  StoreListener,
} from 'nest-redis-lock';
import { MemoryLockStore } from 'nest-redis-lock/testing';

type Step = () => Promise<unknown>;

/**
 * A memory store whose answers a test can hold back or spoil: the command has run when `after…` is called, its answer
 * is given when that resolves. It runs when `before…` has resolved.
 */
export class ScriptedStore implements LockStore {
  readonly memory = new MemoryLockStore();
  /** What was asked of it, in order. */
  readonly asked: ('acquire' | 'cancel' | 'reserve' | 'release')[] = [];
  afterAcquire: Step = async () => undefined;
  afterRenew: Step = async () => undefined;
  afterRelease: Step = async () => undefined;
  beforeUpgrade: Step = async () => undefined;
  afterUpgrade: Step = async () => undefined;

  listen(listener: StoreListener): void {
    this.memory.listen(listener);
  }

  async acquire(command: AcquireCommand): Promise<Granted | Busy> {
    this.asked.push('acquire');
    const answer = await this.memory.acquire(command);
    await this.afterAcquire();
    return answer;
  }

  async renew(renewals: readonly OwnedLock[]): Promise<RenewalOutcome> {
    const outcome = await this.memory.renew(renewals);
    await this.afterRenew();
    return outcome;
  }

  cancel(lock: Cancellation): Promise<void> {
    this.asked.push('cancel');
    return this.memory.cancel(lock);
  }

  reserve(lock: OwnedLock): Promise<Granted | undefined> {
    this.asked.push('reserve');
    return this.memory.reserve(lock);
  }

  async release(lock: OwnedLock, keepMs?: number): Promise<boolean> {
    this.asked.push('release');
    const freed = await this.memory.release(lock, keepMs);
    await this.afterRelease();
    return freed;
  }

  async upgrade(lock: OwnedLock, number: number): Promise<Granted | undefined> {
    await this.beforeUpgrade();
    const grant = await this.memory.upgrade(lock, number);
    await this.afterUpgrade();
    return grant;
  }

  downgrade(lock: OwnedLock, number: number): Promise<boolean> {
    return this.memory.downgrade(lock, number);
  }

  inspect(key: string): Promise<KeyView | undefined> {
    return this.memory.inspect(key);
  }

  describe(token: string): Promise<LockDetails | undefined> {
    return this.memory.describe(token);
  }

  isLocked(key: string): Promise<boolean> {
    return this.memory.isLocked(key);
  }

  forceRelease(key: string, options?: ForceUnlockOptions): Promise<boolean> {
    return this.memory.forceRelease(key, options);
  }

  async close(): Promise<void> {}

  /** How long the store itself still keeps the key, in ms. */
  async leaseLeft(key: string): Promise<number> {
    const answer = await this.memory.acquire({
      keys: [key],
      token: 'a stranger',
      leaseMs: 1,
      sharing: 'exclusive',
      label: undefined,
      queue: false,
    });
    return answer.granted ? 0 : answer.leaseLeftMs;
  }
}
