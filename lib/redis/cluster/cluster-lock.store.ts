import { now, timerAt } from '../../clock/deadline.js';
import { ForwardingLockStore } from '../../store/forwarding-lock.store.js';
import {
  ALIVE_MS,
  type AcquireCommand,
  type Cancellation,
  type Granted,
  type Busy,
  type OwnedLock,
  type RenewalOutcome,
  type StoreListener,
} from '../../store/lock-store.js';
import { RedisLockStore } from '../single/redis-lock.store.js';
import type { ClusterConnection } from './cluster-connection.js';
import type { ClusterNames } from './cluster-names.js';
import type { ClusterTransport } from './cluster-transport.js';
import { briefly, keyGroups, renewalGroups, part, type KeyGroup } from './key-groups.js';
import type { SlotBatches } from './slot-batches.js';
import { allOf, SlotRenewals } from './slot-renewals.js';

/** How far a caller that waits has come. */
interface Progress {
  /** In which of its slots it waits. */
  readonly waitsIn: number;
  /** In how many of them it has asked so far. */
  readonly asked: number;
}

/**
 * Locks on a Redis Cluster. All of a key lies in one slot, so a lock on one key is as on one Redis; one on keys in several
 * slots is taken slot by slot, in one order for all.
 */
export class ClusterLockStore extends ForwardingLockStore<RedisLockStore> {
  readonly #names: ClusterNames;
  readonly #redis: ClusterConnection;
  readonly #timeoutMs: number;
  readonly #batches: SlotBatches;
  readonly #renewals: SlotRenewals;
  readonly #progress = new WeakMap<AcquireCommand, Progress>();

  constructor(transport: ClusterTransport) {
    super(new RedisLockStore(transport));
    const { names, redis, batch, commandTimeoutMs } = transport;
    this.#names = names;
    this.#redis = redis;
    this.#timeoutMs = commandTimeoutMs;
    this.#batches = batch;
    this.#renewals = new SlotRenewals(redis, names);
    // A subscription needs to know a node.
    transport.onConnected(() => this.open());
  }

  /** Who is given the lock while it waits has it only for a moment, and asks for it again: that shows that it lives. */
  override listen(listener: StoreListener): void {
    super.listen({ ...listener, granted: (token) => listener.offered(token) });
  }

  override acquire(command: AcquireCommand): Promise<Granted | Busy> {
    const groups = keyGroups(this.#names, command.keys);
    return groups.length === 1 ? this.inner.acquire(command) : this.#acquireAll(command, groups);
  }

  override async cancel(command: Cancellation): Promise<void> {
    await Promise.all(this.#partsOf(command).map((part) => this.inner.cancel(part)));
  }

  override async renew(renewals: readonly OwnedLock[]): Promise<RenewalOutcome> {
    const bySlot = new Map<number, Map<OwnedLock, OwnedLock>>();
    for (const lock of renewals) {
      for (const { slot, keys } of keyGroups(this.#names, lock.keys)) {
        const parts = bySlot.get(slot) ?? new Map<OwnedLock, OwnedLock>();
        bySlot.set(slot, parts.set({ keys, token: lock.token, leaseMs: lock.leaseMs }, lock));
      }
    }
    const slots = [...bySlot.values()];
    const outcomes = slots.map(async (parts): Promise<RenewalOutcome> => {
      const { gone, unknown } = await this.#renewals.renew([...parts.keys()]);
      return { gone: gone.map((part) => parts.get(part)!), unknown: unknown.map((part) => parts.get(part)!) };
    });
    return allOf(await Promise.allSettled(outcomes), slots.map((parts) => [...parts.values()])); // prettier-ignore
  }

  override renewalGroups<Lock extends OwnedLock>(locks: readonly Lock[]): readonly (readonly Lock[])[] {
    return renewalGroups(this.#names, locks);
  }

  override firstOf(keys: readonly string[]): string {
    return keyGroups(this.#names, keys)[0]!.keys[0]!;
  }

  override async reserve(lock: OwnedLock): Promise<Granted | undefined> {
    return this.#inTime(async () =>
      this.#together(await Promise.all(this.#partsOf(lock).map((part) => this.inner.reserve(part))), lock),
    );
  }

  override upgrade(lock: OwnedLock, number: number): Promise<Granted | undefined> {
    const parts = this.#partsOf(lock);
    return this.#inTime(async () => {
      const grants = await Promise.all(parts.map((part) => this.inner.upgrade(part, number)));
      const grant = await this.#together(grants, lock);
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

  /** Keeps what it has of the slots before the one that it has to queue in, and has nothing of those after it. */
  #acquireAll(command: AcquireCommand, groups: readonly KeyGroup[]): Promise<Granted | Busy> {
    return this.#inTime((hurry) => this.#acquireEach(command, groups, hurry));
  }

  /** @param hurry throws when nobody waits for the answer any more: then it gives back what it has */
  async #acquireEach(command: AcquireCommand, groups: readonly KeyGroup[], hurry: () => void): Promise<Granted | Busy> {
    const parts = groups.map(({ keys }) => part(command, keys));
    const grants: Granted[] = [];
    try {
      const held = command.wasOffered
        ? undefined
        : await this.#heldStill(parts, this.#progress.get(command)?.waitsIn ?? 0);
      hurry();
      if (held) return held;
      for (const part of parts) {
        const answer = await this.inner.acquire(part);
        hurry();
        if (!answer.granted) {
          const spent = await this.#stopAt(parts.indexOf(part), parts, command);
          hurry();
          return spent ? { ...answer, spent } : answer;
        }
        grants.push(answer);
      }
      const grant = await this.#together(grants, command);
      hurry();
      return grant!;
    } catch (error) {
      for (const part of parts) void this.inner.cancel(part);
      throw error;
    }
  }

  /**
   * Asks only in the slot in which the caller waits, and renews what it has before that for as long as it counts as alive: it may
   * stand still at any time. Answers undefined when it has all that, or something before it is missing.
   *
   * @throws LockUnavailableError
   */
  async #heldStill(parts: readonly AcquireCommand[], waitsIn: number): Promise<Busy | undefined> {
    if (waitsIn === 0) return undefined;
    const { gone, unknown } = await this.renew(parts.slice(0, waitsIn).map(briefly));
    const answer = gone.length + unknown.length > 0 ? undefined : await this.inner.acquire(parts[waitsIn]!);
    return answer?.granted === false ? answer : undefined;
  }

  /**
   * Answers whether the token must not be used again. It has to give up keys of later slots when it lost one before them, and to hold those before
   * for a short time only. If that was sent twice, a late copy would do it to the lock that it has by then.
   *
   * @throws LockUnavailableError when it may still have keys that others wait for, before those that it waits for itself
   */
  async #stopAt(index: number, parts: readonly AcquireCommand[], command: AcquireCommand): Promise<boolean> {
    if (!command.queue) {
      await Promise.all(parts.slice(0, index).map((part) => this.inner.cancel(part)));
      return false;
    }
    const asked = this.#progress.get(command)?.asked ?? (command.isQueued ? parts.length : 0);
    this.#progress.set(command, { waitsIn: index, asked: Math.max(asked, index + 1) });
    const { epoch } = this.#redis;
    const before = parts.slice(0, index).filter(({ leaseMs }) => leaseMs > ALIVE_MS);
    const after = parts.slice(index + 1, asked);
    await Promise.all([
      ...before.map((part) => this.inner.shorten(briefly(part))),
      ...after.map((part) => this.inner.tryCancel(part)),
    ]);
    const spent = before.length + after.length > 0 && epoch !== this.#redis.epoch;
    if (spent) for (const part of parts) void this.inner.cancel(part);
    return spent;
  }

  /**
   * One fence for all slots, larger than each before: the largest, to which the notes of the other slots are lifted. Undefined
   * when one of the grants is missing.
   */
  async #together(
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

  /**
   * Settles within the command time-out, however many calls one after the other it takes.
   *
   * @throws LockUnavailableError
   */
  async #inTime<Answer>(work: (hurry: () => void) => Promise<Answer>): Promise<Answer> {
    const until = now() + this.#timeoutMs;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = timerAt(until, () => reject(this.#redis.late));
    });
    const hurry = () => {
      if (now() >= until) throw this.#redis.late;
    };
    try {
      return await Promise.race([work(hurry), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  #partsOf<Lock extends OwnedLock>(lock: Lock): readonly Lock[] {
    const groups = keyGroups(this.#names, lock.keys);
    return groups.length === 1 ? [lock] : groups.map(({ keys }) => part(lock, keys));
  }
}

/** Whether all of them are true; waits for each, whatever the others do. */
async function all(answers: readonly Promise<boolean>[]): Promise<boolean> {
  await Promise.allSettled(answers);
  return (await Promise.all(answers)).every(Boolean);
}
