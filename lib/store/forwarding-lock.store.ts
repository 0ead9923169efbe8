import type {
  AcquireCommand,
  Busy,
  Cancellation,
  FoundProcesses,
  ForceUnlockOptions,
  Granted,
  KeyView,
  LockDetails,
  LockStore,
  OwnedLock,
  ProcessQuestion,
  ProcessReply,
  RenewalOutcome,
  StoreListener,
} from './lock-store.js';
import { askProcessOf, processesOf } from './processes-of.js';

/** Forwards every call to another store. A store that changes some of its calls extends this and overrides those. */
export abstract class ForwardingLockStore<Inner extends LockStore> implements LockStore {
  protected readonly inner: Inner;

  constructor(inner: Inner) {
    this.inner = inner;
  }

  get nodes(): readonly LockStore[] | undefined {
    return this.inner.nodes;
  }

  open(): void {
    this.inner.open?.();
  }

  listen(listener: StoreListener): void {
    this.inner.listen(listener);
  }

  reach(keys: readonly string[]): Promise<unknown> | undefined {
    return this.inner.reach?.(keys);
  }

  acquire(command: AcquireCommand): Promise<Granted | Busy> {
    return this.inner.acquire(command);
  }

  cancel(command: Cancellation): Promise<void> {
    return this.inner.cancel(command);
  }

  renew(locks: readonly OwnedLock[]): Promise<RenewalOutcome> {
    return this.inner.renew(locks);
  }

  missing(locks: readonly OwnedLock[]): Promise<RenewalOutcome> {
    return this.inner.missing ? this.inner.missing(locks) : this.renew(locks);
  }

  renewalGroups<Lock extends OwnedLock>(locks: readonly Lock[]): readonly (readonly Lock[])[] {
    return this.inner.renewalGroups?.(locks) ?? [locks];
  }

  firstOf(keys: readonly string[]): string | undefined {
    return this.inner.firstOf ? this.inner.firstOf(keys) : keys[0];
  }

  reserve(lock: OwnedLock): Promise<Granted | undefined> {
    return this.inner.reserve(lock);
  }

  release(lock: OwnedLock, keepMs?: number): Promise<boolean> {
    return this.inner.release(lock, keepMs);
  }

  upgrade(lock: OwnedLock, number: number): Promise<Granted | undefined> {
    return this.inner.upgrade(lock, number);
  }

  downgrade(lock: OwnedLock, number: number): Promise<boolean> {
    return this.inner.downgrade(lock, number);
  }

  isLocked(key: string): Promise<boolean> {
    return this.inner.isLocked(key);
  }

  inspect(key: string): Promise<KeyView | undefined> {
    return this.inner.inspect(key);
  }

  describe(token: string): Promise<LockDetails | undefined> {
    return this.inner.describe(token);
  }

  findProcesses(): Promise<FoundProcesses> {
    return processesOf(this.inner);
  }

  askProcess(source: string, question: ProcessQuestion): Promise<ProcessReply> {
    return askProcessOf(this.inner, source, question);
  }

  forceRelease(key: string, options?: ForceUnlockOptions): Promise<boolean> {
    return this.inner.forceRelease(key, options);
  }

  async problems(): Promise<readonly string[]> {
    return (await this.inner.problems?.()) ?? [];
  }

  close(): Promise<void> {
    return this.inner.close();
  }
}
