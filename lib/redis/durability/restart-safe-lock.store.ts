import { ForwardingLockStore } from '../../store/forwarding-lock.store.js';
import type { AcquireCommand, Busy, Granted, LockStore, OwnedLock, RenewalOutcome } from '../../store/lock-store.js';
import type { QuorumNode } from '../../store/quorum/quorum-nodes.js';
import type { Connection } from '../connection/connection.js';
import { RestartGuard, type RestartGuardOptions } from './restart-guard.js';

/** The connection to the server that is guarded. */
interface GuardedConnection {
  readonly redis: Connection;
  onConnected(callback: () => void): void;
}

/**
 * Grants no locks while the server may have forgotten some: for the longest lease after the server was started. All
 * else is up to the store on that server.
 */
export class RestartSafeLockStore<Inner extends LockStore = LockStore> extends ForwardingLockStore<Inner> {
  readonly #redis: Connection;
  readonly #guard: RestartGuard;
  /** By token: the checks that acquires wait for before they are sent. */
  readonly #checks = new Map<string, Promise<void>>();

  constructor(store: Inner, connection: GuardedConnection, options: RestartGuardOptions) {
    super(store);
    this.#redis = connection.redis;
    this.#guard = new RestartGuard(this.#redis, options);
    connection.onConnected(() => this.#guard.noteConnection());
  }

  override acquire(command: AcquireCommand): Promise<Granted | Busy> {
    this.#guard.noteLease(command.leaseMs);
    // Not an async function: what is known already is not waited for, so every node of a quorum is asked in the same
    // tick.
    return this.#guard.isOver
      ? this.#acquire(command)
      : this.#redis.inTime((throwIfLate) => this.#acquireChecked(command, throwIfLate));
  }

  /** An upgrade is a grant: the server may have forgotten other readers. */
  override upgrade(lock: OwnedLock, number: number): Promise<Granted | undefined> {
    if (this.#guard.isOver) return super.upgrade(lock, number);
    return this.#redis.inTime(async (throwIfLate) => {
      await this.#guard.check();
      throwIfLate();
      return super.upgrade(lock, number);
    });
  }

  override renew(renewals: readonly OwnedLock[]): Promise<RenewalOutcome> {
    for (const { leaseMs } of renewals) this.#guard.noteLease(leaseMs);
    const { epoch } = this.#redis;
    return super.renew(renewals).then((outcome) => {
      this.#guard.noteReply(epoch);
      return outcome;
    });
  }

  override release(lock: OwnedLock, keepMs = 0): Promise<boolean> {
    // A quorum also releases what it was not granted yet: that must not overtake the acquire. If the check fails,
    // nothing was sent.
    const check = this.#checks.get(lock.token);
    return check
      ? check.then(
          () => super.release(lock, keepMs),
          () => false,
        )
      : super.release(lock, keepMs);
  }

  async #acquireChecked(command: AcquireCommand, throwIfLate: () => void): Promise<Granted | Busy> {
    const check = this.#guard.check();
    this.#checks.set(command.token, check);
    try {
      await check;
      throwIfLate();
    } catch (error) {
      // It may stand in the queue, and be handed the key there.
      if (command.isQueued) void this.cancel(command);
      throw error;
    } finally {
      this.#checks.delete(command.token);
    }
    const reply = await this.#acquire(command);
    try {
      throwIfLate();
    } catch (error) {
      void this.cancel(command);
      throw error;
    }
    return reply;
  }

  #acquire(command: AcquireCommand): Promise<Granted | Busy> {
    const { epoch } = this.#redis;
    return super.acquire(command).then((reply) => {
      this.#guard.noteReply(epoch);
      // The command was sent twice, and maybe granted by a server that is younger than the one that was checked.
      return reply.granted && epoch !== this.#redis.epoch ? this.#confirmed(reply, command) : reply;
    });
  }

  /** @throws LockUnavailableError when the grant does not count; it has been undone then */
  async #confirmed(grant: Granted, command: AcquireCommand): Promise<Granted> {
    try {
      await this.#guard.check();
    } catch (error) {
      await this.cancel(command).catch(() => undefined);
      throw error;
    }
    return grant;
  }
}

/** The same for one of the nodes of a quorum. */
export class RestartSafeNode extends RestartSafeLockStore<QuorumNode> implements QuorumNode {
  get isUnsubscribed(): boolean {
    return this.inner.isUnsubscribed;
  }

  raise(fence: number): void {
    this.inner.raise(fence);
  }
}
