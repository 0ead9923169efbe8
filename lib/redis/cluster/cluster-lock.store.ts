import { LockUnavailableError } from '../../errors/lock-unavailable.error.js';
import { ForwardingLockStore } from '../../store/forwarding-lock.store.js';
import {
  ALIVE_MS,
  type AcquireCommand,
  type Cancellation,
  type ForceUnlockOptions,
  type Granted,
  type Busy,
  type KeyView,
  type OwnedLock,
  type RenewalOutcome,
  type StoreListener,
} from '../../store/lock-store.js';
import { RedisLockStore } from '../locks/redis-lock.store.js';
import { allOf } from '../locks/renewals.js';
import type { ClusterConnection } from './cluster-connection.js';
import { withSlotsTaken } from './cluster-errors.js';
import type { ClusterNames } from './cluster-names.js';
import type { ClusterTransport } from './cluster-transport.js';
import { briefly, keyGroups, renewalGroups, part, type KeyGroup } from './key-groups.js';
import type { SlotBatches } from './slot-batches.js';
import { SlotRenewals } from './slot-renewals.js';

/** How far a waiter has come. */
interface Progress {
  /** The slot that it waits in, counted from 0 in the order of its slots. */
  readonly waitsIn: number;
  /** In how many slots it has asked so far. */
  readonly asked: number;
}

/** What goes with a call that acquires slot by slot. */
interface InOrder {
  /** Gets the grant of each slot. */
  readonly grants: Granted[];
  /** Throws when nobody waits for the reply any more: then what was acquired is released. */
  readonly throwIfLate: () => void;
}

/**
 * Stores locks on a Redis Cluster. All data of a key lies in one slot, so a lock on one key works as on one Redis. A
 * lock on keys in several slots is acquired slot by slot, in one order for all callers.
 */
export class ClusterLockStore extends ForwardingLockStore<RedisLockStore> {
  readonly #names: ClusterNames;
  readonly #redis: ClusterConnection;
  readonly #batches: SlotBatches;
  readonly #renewals: SlotRenewals;
  readonly #progress = new WeakMap<AcquireCommand, Progress>();

  constructor(transport: ClusterTransport) {
    super(new RedisLockStore(transport));
    const { names, redis, batch } = transport;
    this.#names = names;
    this.#redis = redis;
    this.#batches = batch;
    this.#renewals = new SlotRenewals(redis, names);
    // The subscription can connect only when a node is known.
    transport.onConnected(() => this.open());
  }

  /**
   * A waiter that is handed the lock has it only for a moment. It asks for the lock again, which shows that it is
   * alive.
   */
  override listen(listener: StoreListener): void {
    super.listen({ ...listener, granted: (token) => listener.offered(token) });
  }

  override reach(keys: readonly string[]): Promise<unknown> | undefined {
    const groups = keyGroups(this.#names, keys);
    if (groups.length === 1) return undefined;
    for (const key of keys) this.#names.check(key);
    return this.#reach(groups);
  }

  override acquire(command: AcquireCommand): Promise<Granted | Busy> {
    const groups = keyGroups(this.#names, command.keys);
    return groups.length === 1 ? this.inner.acquire(command) : this.#acquireAll(command, groups);
  }

  override async cancel(command: Cancellation): Promise<void> {
    await Promise.all(this.#partsOf(command).map((part) => this.inner.cancel(part)));
  }

  override async renew(renewals: readonly OwnedLock[]): Promise<RenewalOutcome> {
    // The node of the subscription may hang, and be none of the cluster any more.
    this.inner.checkSubscription();
    const bySlot = new Map<number, Map<OwnedLock, OwnedLock>>();
    for (const lock of renewals) {
      for (const { slot, keys } of keyGroups(this.#names, lock.keys)) {
        const parts = bySlot.get(slot) ?? new Map<OwnedLock, OwnedLock>();
        const { token, leaseMs, upgrade } = lock;
        bySlot.set(slot, parts.set({ keys, token, leaseMs, upgrade }, lock));
      }
    }
    const slots = [...bySlot.values()];
    const outcomes = slots.map(async (parts): Promise<RenewalOutcome> => {
      const { gone, unknown } = await this.#renewals.renew([...parts.keys()]);
      return { gone: gone.map((part) => parts.get(part)!), unknown: unknown.map((part) => parts.get(part)!) };
    });
    return allOf(
      await Promise.allSettled(outcomes),
      slots.map((parts) => [...parts.values()]),
    );
  }

  override renewalGroups<Lock extends OwnedLock>(locks: readonly Lock[]): readonly (readonly Lock[])[] {
    return renewalGroups(this.#names, locks);
  }

  override firstOf(keys: readonly string[]): string {
    return keyGroups(this.#names, keys)[0]!.keys[0]!;
  }

  override async reserve(lock: OwnedLock): Promise<Granted | undefined> {
    return this.#redis.inTime(async () =>
      this.#combined(await Promise.all(this.#partsOf(lock).map((part) => this.inner.reserve(part))), lock),
    );
  }

  override upgrade(lock: OwnedLock, number: number): Promise<Granted | undefined> {
    const parts = this.#partsOf(lock);
    return this.#redis.inTime(async () => {
      const grants = await Promise.all(parts.map((part) => this.inner.upgrade(part, number)));
      const grant = await this.#combined(grants, lock);
      if (!grant)
        await Promise.all(parts.filter((_, index) => grants[index]).map((part) => this.inner.downgrade(part, number)));
      return grant;
    });
  }

  override async downgrade(lock: OwnedLock, number: number): Promise<boolean> {
    return all(this.#partsOf(lock).map((part) => this.inner.downgrade(part, number)));
  }

  override async release(lock: OwnedLock, keepMs = 0): Promise<boolean> {
    return all(this.#partsOf(lock).map((part) => this.inner.release(part, keepMs)));
  }

  override async isLocked(key: string): Promise<boolean> {
    this.#names.check(key);
    return super.isLocked(key);
  }

  override async inspect(key: string): Promise<KeyView | undefined> {
    this.#names.check(key);
    return super.inspect(key);
  }

  override async forceRelease(key: string, options?: ForceUnlockOptions): Promise<boolean> {
    this.#names.check(key);
    return super.forceRelease(key, options);
  }

  /**
   * Acquires slot by slot. A caller that has to queue in a slot keeps what it has of earlier slots, and has nothing
   * of later ones.
   */
  async #acquireAll(command: AcquireCommand, groups: readonly KeyGroup[]): Promise<Granted | Busy> {
    for (const key of command.keys) this.#names.check(key);
    const grants: Granted[] = [];
    try {
      return await this.#redis.inTime(
        (throwIfLate) => this.#acquireInOrder(command, groups, { grants, throwIfLate }),
        (late) => withSlotsTaken(late, grants.length, groups.length),
      );
    } catch (error) {
      if (!(error instanceof LockUnavailableError)) throw error;
      const slots = groups.map(({ slot }) => slot);
      throw this.#redis.noteOutage(error, slots);
    }
  }

  async #acquireInOrder(
    command: AcquireCommand,
    groups: readonly KeyGroup[],
    { grants, throwIfLate }: InOrder,
  ): Promise<Granted | Busy> {
    const parts = groups.map(({ keys }) => part(command, keys));
    let asked = this.#askedBefore(command, parts);
    try {
      // Who waits looks, too: otherwise it would look while it is offered a key, and keep it from others.
      await this.#reach(groups);
      throwIfLate();
      const busy = command.wasOffered
        ? undefined
        : await this.#busyStill(parts, this.#progress.get(command)?.waitsIn ?? 0);
      throwIfLate();
      if (busy) return busy;
      for (const [index, part] of parts.entries()) {
        asked = Math.max(asked, index + 1);
        const reply = await this.inner.acquire(part);
        throwIfLate();
        if (!reply.granted) {
          const spent = await this.#stopAt(index, parts, command);
          throwIfLate();
          return spent ? { ...reply, spent } : reply;
        }
        grants.push(reply);
      }
      const grant = await this.#combined(grants, command);
      throwIfLate();
      return grant!;
    } catch (error) {
      for (const part of parts.slice(0, asked)) void this.inner.cancel(part);
      throw error;
    }
  }

  /**
   * Asks only in the slot in which the caller waits, and renews what it has of earlier slots for as long as a waiter
   * counts as alive, because its process may stop at any time. Returns undefined when the slot was granted, or when a
   * lock of an earlier slot is missing.
   *
   * @throws LockUnavailableError
   */
  async #busyStill(parts: readonly AcquireCommand[], waitsIn: number): Promise<Busy | undefined> {
    if (waitsIn === 0) return undefined;
    const { gone, unknown } = await this.renew(parts.slice(0, waitsIn).map(briefly));
    if (gone.length + unknown.length > 0) return undefined;
    const reply = await this.inner.acquire(parts[waitsIn]!);
    return reply.granted ? undefined : reply;
  }

  /**
   * Stops at the slot in which the caller has to queue: it gives up the keys of later slots, which it may have from
   * before it lost an earlier one, and shortens the leases of earlier slots. Returns whether the token must not be
   * used again: if those commands were sent twice, a late copy would do the same to the lock that the token has by
   * then.
   *
   * @throws LockUnavailableError when the caller may still have keys of later slots, or long leases of earlier ones
   */
  async #stopAt(index: number, parts: readonly AcquireCommand[], command: AcquireCommand): Promise<boolean> {
    if (!command.queue) {
      await Promise.all(parts.slice(0, index).map((part) => this.inner.cancel(part)));
      return false;
    }
    const asked = this.#askedBefore(command, parts);
    this.#progress.set(command, { waitsIn: index, asked: Math.max(asked, index + 1) });
    const before = parts.slice(0, index).filter(({ leaseMs }) => leaseMs > ALIVE_MS);
    const after = parts.slice(index + 1, asked);
    const slots = [...before, ...after].map(({ keys }) => this.#names.slot(keys[0]!));
    const state = this.#redis.stateOf(slots);
    await Promise.all([
      ...before.map((part) => this.inner.shorten(briefly(part))),
      ...after.map((part) => this.inner.tryCancel(part)),
    ]);
    const spent = state !== this.#redis.stateOf(slots);
    if (spent) for (const part of parts) void this.inner.cancel(part);
    return spent;
  }

  /** In how many slots the caller may have asked before. */
  #askedBefore(command: AcquireCommand, parts: readonly AcquireCommand[]): number {
    return this.#progress.get(command)?.asked ?? (command.isQueued ? parts.length : 0);
  }

  /**
   * Combines the grants of all slots. Their fence is the largest one, and the fence counters of the other slots are
   * advanced to it. Returns undefined when one of the grants is missing.
   */
  async #combined(
    grants: readonly (Granted | undefined)[],
    { keys }: Pick<OwnedLock, 'keys'>,
  ): Promise<Granted | undefined> {
    if (!grants.every((grant) => grant !== undefined)) return undefined;
    if (grants.length === 1) return grants[0];
    const fence = Math.max(...grants.map(({ fence }) => fence));
    const groups = keyGroups(this.#names, keys);
    await Promise.all(
      groups.filter((_, index) => grants[index]!.fence < fence).map(({ slot }) => this.#batches.raiseIn(slot, fence)),
    );
    return { granted: true, fence, contended: grants.some(({ contended }) => contended) };
  }

  #reach(groups: readonly KeyGroup[]): Promise<unknown> | undefined {
    return this.#redis.reach(groups.map(({ keys }) => this.#names.ofKey(keys[0]!)));
  }

  #partsOf<Lock extends OwnedLock>(lock: Lock): readonly Lock[] {
    const groups = keyGroups(this.#names, lock.keys);
    return groups.length === 1 ? [lock] : groups.map(({ keys }) => part(lock, keys));
  }
}

/** Returns whether all of them are true. Waits for each, whatever the others do. */
async function all(results: readonly Promise<boolean>[]): Promise<boolean> {
  await Promise.allSettled(results);
  return (await Promise.all(results)).every(Boolean);
}
