import type { Cluster } from 'ioredis';
import type { AcquireCommand, Cancellation, Granted, Held, Renewal, StoreListener } from '../../store/lock-store.js';
import type { Reach, ReachOptions } from '../reach.js';
import { RedisLockStore } from '../redis-lock.store.js';
import { ClusterConnection } from './cluster-connection.js';
import { ClusterNames } from './cluster-names.js';
import { subscriberIn } from './cluster-subscriber.js';
import { keyGroups, locksApart, part, type KeyGroup } from './key-groups.js';
import { SlotBatches } from './slot-batches.js';

/**
 * Locks on a Redis Cluster. All of a key lies in one slot, so a lock on one key is as on one Redis; one on keys in several
 * slots is taken slot by slot, in one order for all.
 */
export class ClusterLockStore extends RedisLockStore {
  readonly #names: ClusterNames;
  readonly #batches: SlotBatches;

  constructor(cluster: Cluster, options: ReachOptions) {
    const names = new ClusterNames(options.keyPrefix);
    let batches: SlotBatches | undefined;
    super(options, (_, connected): Reach => {
      const redis = new ClusterConnection(cluster, options.commandTimeoutMs, connected);
      batches = new SlotBatches(redis, names);
      return { names, redis, renewals: redis, batch: batches, subscriber: () => subscriberIn(cluster, options.commandTimeoutMs) };
    });
    this.#names = names;
    this.#batches = batches!;
  }

  /** Who is given the lock while it waits has it only for a moment, and asks for it again: that shows that it lives. */
  override listen(listener: StoreListener): void {
    super.listen({ ...listener, granted: (token) => listener.called(token) });
  }

  override acquire(command: AcquireCommand): Promise<Granted | Held> {
    const groups = keyGroups(this.#names, command.keys);
    return groups.length === 1 ? super.acquire(command) : this.#acquireAll(command, groups);
  }

  override async cancel(command: Cancellation): Promise<void> {
    await Promise.all(this.#partsOf(command).map((part) => super.cancel(part)));
  }

  override async renew(renewals: readonly Renewal[]): Promise<readonly Renewal[]> {
    const bySlot = new Map<number, Map<Renewal, Renewal>>();
    for (const lock of renewals) {
      for (const { slot, keys } of keyGroups(this.#names, lock.keys)) {
        const parts = bySlot.get(slot) ?? new Map<Renewal, Renewal>();
        bySlot.set(slot, parts.set({ keys, token: lock.token, leaseMs: lock.leaseMs }, lock));
      }
    }
    const gone = await Promise.all([...bySlot.values()].map(async (parts) => (await super.renew([...parts.keys()])).map((part) => parts.get(part)!)));
    return gone.flat();
  }

  apart<Lock extends Renewal>(locks: readonly Lock[]): readonly (readonly Lock[])[] {
    return locksApart(this.#names, locks);
  }

  override async reserve(lock: Renewal): Promise<Granted | undefined> {
    return this.#together(await Promise.all(this.#partsOf(lock).map((part) => super.reserve(part))), lock);
  }

  override async upgrade(lock: Renewal): Promise<Granted | undefined> {
    const parts = this.#partsOf(lock);
    const grants = await Promise.all(parts.map((part) => super.upgrade(part)));
    const grant = await this.#together(grants, lock);
    if (!grant) await Promise.all(parts.filter((_, index) => grants[index]).map((part) => super.downgrade(part)));
    return grant;
  }

  override async downgrade(lock: Renewal): Promise<boolean> {
    return all(this.#partsOf(lock).map((part) => super.downgrade(part)));
  }

  override async release(lock: Renewal, keepMs = 0): Promise<boolean> {
    return all(this.#partsOf(lock).map((part) => super.release(part, keepMs)));
  }

  protected override connected(again: boolean): void {
    super.connected(again);
    // A subscription needs to know a node.
    this.open();
  }

  /** Keeps what it has of the slots before the one that it has to queue in, and has nothing of those after it. */
  async #acquireAll(command: AcquireCommand, groups: readonly KeyGroup[]): Promise<Granted | Held> {
    const parts = groups.map(({ keys }) => part(command, keys));
    const grants: Granted[] = [];
    try {
      for (const part of parts) {
        const answer = await super.acquire(part);
        if (!answer.granted) {
          await this.#stopAt(parts.indexOf(part), parts);
          return answer;
        }
        grants.push(answer);
      }
      return (await this.#together(grants, command))!;
    } catch (error) {
      for (const part of parts) void super.cancel(part);
      throw error;
    }
  }

  /** @throws LockUnavailableError when it may still have keys that others wait for, before those that it waits for itself */
  async #stopAt(index: number, parts: readonly AcquireCommand[]): Promise<void> {
    const { queue, again } = parts[index]!;
    if (!queue) await Promise.all(parts.slice(0, index).map((part) => super.cancel(part)));
    else if (again) await Promise.all(parts.slice(index + 1).map((part) => this.giveUp(part)));
  }

  /**
   * One fence for all slots, larger than each before: the largest, to which the notes of the other slots are lifted. Undefined
   * when one of the grants is missing.
   */
  async #together(grants: readonly (Granted | undefined)[], { keys }: Pick<Renewal, 'keys'>): Promise<Granted | undefined> {
    if (!grants.every((grant) => grant !== undefined)) return undefined;
    if (grants.length === 1) return grants[0];
    const fence = Math.max(...grants.map(({ fence }) => fence));
    const groups = keyGroups(this.#names, keys);
    await Promise.all(groups.filter((_, index) => grants[index]!.fence < fence).map(({ slot }) => this.#batches.raiseIn(slot, fence)));
    return { granted: true, fence, contended: grants.some(({ contended }) => contended) };
  }

  #partsOf<Lock extends Renewal>(lock: Lock): readonly Lock[] {
    const groups = keyGroups(this.#names, lock.keys);
    return groups.length === 1 ? [lock] : groups.map(({ keys }) => part(lock, keys));
  }
}

/** Whether all of them are true; waits for each, whatever the others do. */
async function all(answers: readonly Promise<boolean>[]): Promise<boolean> {
  await Promise.allSettled(answers);
  return (await Promise.all(answers)).every(Boolean);
}
