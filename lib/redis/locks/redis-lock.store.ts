import { now } from '../../clock/deadline.js';
import { otherPermits } from '../../errors/lock-options.error.js';
import { Listeners } from '../../store/listeners.js';
import {
  permitsOf,
  HAND_OFF_FENCES,
  fenceCountFor,
  hasLocalWaiters,
  type AcquireCommand,
  type Busy,
  type Cancellation,
  type ForceUnlockOptions,
  type FoundProcesses,
  type Granted,
  type KeyView,
  type LockDetails,
  type OwnedLock,
  type ProcessQuestion,
  type ProcessReply,
  type RenewalOutcome,
  type StoreListener,
} from '../../store/lock-store.js';
import type { QuorumNode } from '../../store/quorum/quorum-nodes.js';
import type { Connection } from '../connection/connection.js';
import { RefusedError } from '../connection/connection-errors.js';
import { healthWarnings } from '../connection/server-check.js';
import { HOLDERS_OF } from '../lua/holders-of.script.js';
import { INSPECT } from '../lua/inspect.script.js';
import { grantOf } from '../lua/locks.script.js';
import type { Publish } from '../wake/echo-check.js';
import { OtherProcesses } from '../wake/other-processes.js';
import { WakeChannel } from '../wake/wake-channel.js';
import { handleWakeMessage } from '../wake/wake-handler.js';
import { kindOf } from '../wire/lock-kind.js';
import { LateCopies } from './late-copies.js';
import type { LockOperation, Verb } from './lock-operation.js';
import { Orphans } from './orphans.js';
import { renewAll } from './renewals.js';
import { forceRelease } from './force-release.js';
import type { Transport } from './transport.js';

/** Stores locks on one Redis. Each operation is atomic, and may run twice without harm. */
export class RedisLockStore implements QuorumNode {
  readonly #transport: Transport;
  readonly #redis: Connection;
  readonly #orphans: Orphans;
  readonly #lateCopies: LateCopies;
  readonly #channel: WakeChannel;
  readonly #listeners = new Listeners();
  readonly #others: OtherProcesses;

  constructor(transport: Transport) {
    const { redis, log } = transport;
    this.#transport = transport;
    this.#redis = redis;
    this.#orphans = new Orphans(
      (lock) => this.tryCancel(lock),
      (lock, keepMs) => this.#count('keep', { ...lock, leaseMs: keepMs }, undefined, lock),
      () => redis.isDown,
    );
    this.#lateCopies = new LateCopies(redis, this.#orphans);
    const publish: Publish = (channel, message, over) => redis.publish(channel, message, over);
    const others = (this.#others = new OtherProcesses({
      redis,
      names: transport.names,
      listeners: this.#listeners,
      channel: () => this.#channel,
    }));
    this.#channel = new WakeChannel(transport.subscriber, publish, {
      message: (text) =>
        handleWakeMessage(text, {
          listeners: this.#listeners,
          others,
          names: transport.names,
          cancel: (lock) => this.cancel(lock),
        }),
      up: (reconnected) => {
        if (reconnected) log.subscribed(redis.server);
        this.#listeners.resync();
      },
      down: (cause) => log.unsubscribed(redis.server, cause),
      mute: (error) => log.mute(redis.server, error),
    });
    transport.onConnected((reconnected) => {
      if (redis.isToOneServer) this.#orphans.answeredAnew();
      void this.#orphans.reconnected();
      if (!reconnected) return;
      this.#channel.checkAlive();
      this.#listeners.resync();
    });
    transport.onSlow(() => this.#orphans.answeredAnew());
  }

  /** Not while the first subscription is being made: that ends in a moment. */
  get isUnsubscribed(): boolean {
    return this.#channel.state === 'down';
  }

  open(): void {
    this.#transport.open();
    void this.#channel.open();
  }

  listen(listener: StoreListener): void {
    this.#listeners.add(listener);
    this.#channel.name(this.#transport.names.wakeChannel(listener.source));
  }

  /** Makes sure, now and then, that messages reach this process. */
  checkSubscription(): void {
    this.#channel.checkNowAndThen();
  }

  acquire(command: AcquireCommand): Promise<Granted | Busy> {
    if (this.#channel.state === 'new' && command.queue) return this.#acquireFirst(command);
    if (this.#channel.state === 'new') void this.#channel.open();
    return this.#acquire(this.#verbFor(command), command);
  }

  async cancel(command: Cancellation): Promise<void> {
    const copies = this.#lateCopies.take(command);
    const freed = await this.tryCancel(command).catch(() => undefined);
    this.#lateCopies.cancelled(command, copies, freed !== undefined);
  }

  /**
   * As `cancel`, but tries once. Resolves with how many keys the token owned.
   *
   * @throws LockUnavailableError
   */
  tryCancel(lock: Cancellation): Promise<number> {
    return this.#count('cancel', lock, kindOf(lock), lock);
  }

  /**
   * Moves the end of a lease to `leaseMs` from now, also when that is earlier. Resolves with how many keys the token
   * owned.
   *
   * @throws LockUnavailableError
   */
  shorten(lock: OwnedLock): Promise<number> {
    return this.#count('shorten', lock);
  }

  renew(locks: readonly OwnedLock[]): Promise<RenewalOutcome> {
    return renewAll(this.#transport, locks);
  }

  reserve(lock: OwnedLock): Promise<Granted | undefined> {
    return this.#count('reserve', lock).then((fence) => grantOf(fence, HAND_OFF_FENCES));
  }

  upgrade(lock: OwnedLock, number: number): Promise<Granted | undefined> {
    return this.#count('upgrade', lock, String(number)).then((fence) => grantOf(fence, fenceCountFor(lock.token)));
  }

  async downgrade(lock: OwnedLock, number: number): Promise<boolean> {
    return (await this.#count('downgrade', lock, String(number))) === lock.keys.length;
  }

  release({ keys, token, leaseMs }: OwnedLock, keepMs = 0): Promise<boolean> {
    const lock = { keys, token, leaseMs, sharing: 'exclusive', label: undefined } as const;
    const keepUntil = keepMs > 0 ? now() + keepMs : 0;
    const { epoch } = this.#redis;
    return new Promise((resolve, reject) => {
      const operation: LockOperation = {
        verb: keepMs > 0 ? 'keep' : 'release',
        lock: keepMs > 0 ? { ...lock, leaseMs: keepMs } : lock,
        done: (freed) => {
          this.#lateCopies.released(lock);
          // If it was sent twice, the first copy may have freed the key: that is no loss.
          resolve(freed === lock.keys.length || epoch !== this.#redis.epoch || operation.resent === true);
        },
        failed: (error) => {
          this.#lateCopies.releaseFailed(lock, keepUntil);
          reject(error);
        },
      };
      this.#transport.batch.add(operation);
    });
  }

  raise(fence: number): void {
    this.#transport.batch.raise(fence);
  }

  async isLocked(key: string): Promise<boolean> {
    return (await this.#redis.run(HOLDERS_OF, this.#transport.names.ofKey(key), [])).length > 0;
  }

  inspect(key: string): Promise<KeyView | undefined> {
    return this.#redis.run(INSPECT, this.#transport.names.ofKey(key), []);
  }

  describe(token: string): Promise<LockDetails | undefined> {
    return this.#others.describe(token);
  }

  findProcesses(): Promise<FoundProcesses> {
    return this.#others.find();
  }

  askProcess(source: string, question: ProcessQuestion): Promise<ProcessReply> {
    return this.#others.ask(source, question);
  }

  forceRelease(key: string, options?: ForceUnlockOptions): Promise<boolean> {
    return forceRelease(this.#transport, key, options);
  }

  problems(): Promise<readonly string[]> {
    return healthWarnings(this.#redis, { isUnsubscribed: this.isUnsubscribed });
  }

  async close(): Promise<void> {
    const { batch, renewals } = this.#transport;
    await this.#orphans.close();
    batch.close();
    this.#others.questions.close();
    this.#channel.close();
    this.#redis.close();
    if (renewals !== this.#redis) renewals.close();
  }

  /**
   * Acquires while the channel is new. Nobody queues before this process can hear of its turn, or its place would go
   * to the next.
   */
  async #acquireFirst(command: AcquireCommand): Promise<Granted | Busy> {
    void this.#channel.open();
    if (!hasLocalWaiters(command.token)) {
      const reply = await this.#acquire('try', command);
      if (reply.granted) return reply;
    }
    await this.#channel.opened();
    return this.#acquire(this.#verbFor(command), command);
  }

  #verbFor({ queue, token, polls }: AcquireCommand): Verb {
    if (!queue) return polls ? 'poll' : 'try';
    if (this.#channel.state !== 'up') return 'unsubscribed';
    return hasLocalWaiters(token) ? 'handoff' : 'queue';
  }

  #acquire(verb: Verb, command: AcquireCommand): Promise<Granted | Busy> {
    const { epoch } = this.#redis;
    return new Promise((resolve, reject) =>
      this.#transport.batch.add({
        verb,
        lock: command,
        // Only a caller that may queue has a label there.
        kind: kindOf(command.queue ? command : { ...command, label: undefined }),
        done: (reply) => {
          const isGrant = typeof reply === 'number';
          // Who waits has to hear of its turn. On a quorum, who gets the key each time has to hear that others wait.
          if (command.polls || (command.queue && !isGrant)) this.#channel.checkNowAndThen();
          if (isGrant) {
            if (command.isQueued && !command.wasOffered)
              this.#channel.checkAlive(this.#redis.isToOneServer ? undefined : command.keys[0]);
            this.#lateCopies.settled(command, epoch);
            resolve(grantOf(reply, fenceCountFor(command.token))!);
          } else if ('permits' in reply) {
            void this.cancel(command);
            reject(otherPermits(command.keys, permitsOf(command.sharing)!, reply.permits));
          } else {
            this.#lateCopies.busy(command, epoch);
            resolve(reply);
          }
        },
        failed: (error) => {
          if (error instanceof RefusedError) {
            this.#lateCopies.settled(command, epoch);
            void this.cancel(command);
          } else this.#lateCopies.failed(command, epoch, error);
          reject(error);
        },
        repliedLate: () => this.#orphans.repliedLate(command),
      }),
    );
  }

  /**
   * Runs an operation whose reply is a number: see the locks script.
   *
   * @param givesBack what it releases, which may be an orphan by the time of a late reply
   * @throws LockUnavailableError
   */
  #count(verb: Verb, lock: OwnedLock, kind?: string, givesBack?: Cancellation): Promise<number> {
    const repliedLate = givesBack && (() => this.#orphans.attemptRepliedLate(givesBack));
    return new Promise((resolve, failed) => {
      const done = resolve as LockOperation['done'];
      this.#transport.batch.add({ verb, lock, kind, done, failed, repliedLate });
    });
  }
}
