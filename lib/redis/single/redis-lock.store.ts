import { now } from '../../clock/deadline.js';
import { otherPermits } from '../../errors/lock-options.error.js';
import {
  HAND_OFF_FENCES,
  fenceCountFor,
  hasLocalWaiters,
  KEPT_MARK,
  type AcquireCommand,
  type Cancellation,
  type ForceUnlockOptions,
  type Granted,
  type Busy,
  type KeyView,
  type LockDetails,
  type OwnedLock,
  type RenewalOutcome,
  type StoreListener,
} from '../../store/lock-store.js';
import { Listeners } from '../../store/listeners.js';
import type { QuorumNode } from '../../store/quorum/quorum-nodes.js';
import { permitsOf } from '../../store/sharing.js';
import type { KeyNames } from '../wire/key-names.js';
import { kindOf } from '../wire/lock-kind.js';
import type { LockOperation, Verb } from './lock-operation.js';
import { Orphans } from './orphans.js';
import { StrayCopies } from './stray-copies.js';
import { handleWakeMessage } from '../wake/wake-handler.js';
import { HolderQueries } from '../wake/holder-queries.js';
import { connectToRedis, type Operations, type Transport, type TransportOptions } from './transport.js';
import type { Connection } from '../connection/connection.js';
import { NotSentError, RefusedError } from '../connection/connection-errors.js';
import { HOLDERS_OF, isHolder } from '../lua/holders-of.script.js';
import { INSPECT } from '../lua/inspect.script.js';
import { grantOf } from '../lua/locks.script.js';
import { RENEW } from '../lua/renew.script.js';
import { healthWarnings } from '../connection/server-check.js';
import { forcedText } from '../wake/wake-message.js';
import { WakeChannel } from '../wake/wake-channel.js';

/** Locks on one Redis: each operation is atomic, and safe to be run twice. */
export class RedisLockStore implements QuorumNode {
  protected readonly redis: Connection;
  /** What renews: the same, if nothing there holds it up. */
  protected readonly renewals: Connection;
  readonly #names: KeyNames;
  readonly #batch: Operations;
  readonly #orphans: Orphans;
  readonly #channel: WakeChannel;
  readonly #listeners = new Listeners();
  readonly #holderQueries = new HolderQueries(
    (channel, message) => this.redis.publish(channel, message),
    () => this.#channel.checkAlive(),
  );
  readonly #strays = new StrayCopies();

  constructor(
    options: TransportOptions,
    connect: (options: TransportOptions, connected: (reconnected: boolean) => void) => Transport = connectToRedis,
  ) {
    const transport = connect(options, (reconnected) => this.connected(reconnected));
    ({ names: this.#names, redis: this.redis, renewals: this.renewals, batch: this.#batch } = transport);
    this.#orphans = new Orphans(
      (lock) => this.giveUp(lock),
      (lock, keepMs) => this.count('keep', { ...lock, leaseMs: keepMs }),
    );
    this.#channel = new WakeChannel(transport.subscriber, {
      message: (text) =>
        handleWakeMessage(text, {
          listeners: this.#listeners,
          holderQueries: this.#holderQueries,
          cancel: (name, lock) => this.cancel({ ...lock, keys: [this.#names.keyOf(name)] }),
        }),
      up: (reconnected) => {
        if (reconnected) options.log.subscribed(this.redis.server);
        this.#listeners.resync();
      },
      down: (cause) => options.log.unsubscribed(this.redis.server, cause),
    });
  }

  open(): void {
    this.redis.open();
    void this.#channel.open();
  }

  listen(listener: StoreListener): void {
    this.#listeners.add(listener);
    this.#channel.name(this.#names.wakeChannel(listener.source));
  }

  acquire(command: AcquireCommand): Promise<Granted | Busy> {
    if (this.#channel.state === 'new' && command.queue) return this.#firstOf(command);
    if (this.#channel.state === 'new') void this.#channel.open();
    return this.#take(this.#verbFor(command), command);
  }

  async cancel(command: Cancellation): Promise<void> {
    const copies = this.#strays.take(command)?.copies ?? 0;
    const freed = await this.giveUp(command).catch(() => undefined);
    if (copies > 0 || freed === undefined) this.#orphans.add(command, freed === undefined ? copies + 1 : copies);
  }

  async renew(renewals: readonly OwnedLock[]): Promise<RenewalOutcome> {
    const owners: OwnedLock[] = [];
    const keys: string[] = [];
    const args: (string | number)[] = [];
    for (const lock of renewals) {
      for (const key of lock.keys) {
        owners.push(lock);
        keys.push(this.#names.lock(key));
        args.push(lock.token, lock.leaseMs);
      }
    }
    const { gone, unknown } = await this.renewals.run(RENEW, keys, args);
    return { gone: gone.map((number) => owners[number - 1]!), unknown: unknown.map((number) => owners[number - 1]!) };
  }

  reserve(lock: OwnedLock): Promise<Granted | undefined> {
    return this.count('reserve', lock).then((fence) => grantOf(fence, HAND_OFF_FENCES));
  }

  upgrade(lock: OwnedLock, number: number): Promise<Granted | undefined> {
    return this.count('upgrade', lock, String(number)).then((fence) => grantOf(fence, fenceCountFor(lock.token)));
  }

  async downgrade(lock: OwnedLock, number: number): Promise<boolean> {
    return (await this.count('downgrade', lock, String(number))) === lock.keys.length;
  }

  release({ keys, token, leaseMs }: OwnedLock, keepMs = 0): Promise<boolean> {
    const lock = { keys, token, leaseMs, sharing: 'exclusive', label: undefined } as const;
    const keepUntil = now() + keepMs;
    const { epoch } = this.redis;
    return new Promise((resolve, reject) => {
      const operation: LockOperation = {
        verb: keepMs > 0 ? 'keep' : 'release',
        lock: keepMs > 0 ? { ...lock, leaseMs: keepMs } : lock,
        done: (freed) => {
          const stray = this.#strays.take(lock);
          if (stray) this.#orphans.add(stray.lock, stray.copies);
          // What was sent again may have freed the key by its first try: not a loss.
          resolve(freed === lock.keys.length || epoch !== this.redis.epoch || operation.resent === true);
        },
        failed: (error) => {
          const stray = this.#strays.take(lock);
          this.#orphans.add(stray?.lock ?? lock, (stray?.copies ?? 0) + 1, Math.max(0, keepUntil - now()));
          reject(error);
        },
      };
      this.#batch.add(operation);
    });
  }

  raise(fence: number): void {
    this.#batch.raise(fence);
  }

  async isLocked(key: string): Promise<boolean> {
    return (await this.redis.run(HOLDERS_OF, this.#names.ofKey(key), [])).length > 0;
  }

  inspect(key: string): Promise<KeyView | undefined> {
    return this.redis.run(INSPECT, this.#names.ofKey(key), []);
  }

  async describe(token: string): Promise<LockDetails | undefined> {
    const source = token.slice(0, token.lastIndexOf('.'));
    const own = this.#listeners.source;
    const known = this.#listeners.describe(token);
    if (known || !source || !own || token.endsWith(KEPT_MARK)) return known;
    await this.#channel.opened();
    return this.#channel.state === 'up'
      ? this.#holderQueries.ask(token, this.#names.wakeChannel(source), this.#names.wakeChannel(own))
      : undefined;
  }

  /** By the tokens that it finds: taken blindly and sent twice, it could be the lock of the next one. */
  async forceRelease(key: string, { token: only, ...forced }: ForceUnlockOptions = {}): Promise<boolean> {
    const tokens = (await this.redis.run(HOLDERS_OF, this.#names.ofKey(key), [])).filter(
      (token) => only === undefined || isHolder(token, only),
    );
    await Promise.all(
      tokens.map((token) => this.count('force', { keys: [key], token, leaseMs: 0 }, forcedText(forced))),
    );
    return tokens.length > 0;
  }

  problems(): Promise<readonly string[]> {
    return healthWarnings(this.redis, { isUnsubscribed: this.#channel.state === 'down' });
  }

  async close(): Promise<void> {
    await this.#orphans.close();
    this.#batch.close();
    this.#holderQueries.close();
    this.#channel.close();
    this.redis.close();
    if (this.renewals !== this.redis) this.renewals.close();
  }

  /**
   * As `cancel`, but tries once. Answers how many keys were the token's.
   *
   * @throws LockUnavailableError
   */
  protected giveUp(lock: Cancellation): Promise<number> {
    return this.count('cancel', lock, kindOf(lock));
  }

  /** A connection was made: the first, or again. */
  protected connected(reconnected: boolean): void {
    void this.#orphans.reconnected();
    if (reconnected) this.#listeners.resync();
  }

  /** Nobody queues before this process can hear of its turn: its place would go to the next. */
  async #firstOf(command: AcquireCommand): Promise<Granted | Busy> {
    void this.#channel.open();
    if (!hasLocalWaiters(command.token)) {
      const answer = await this.#take('try', command);
      if (answer.granted) return answer;
    }
    await this.#channel.opened();
    return this.#take(this.#verbFor(command), command);
  }

  #verbFor({ queue, token, polls: waits }: AcquireCommand): Verb {
    if (!queue) return waits ? 'poll' : 'try';
    if (this.#channel.state !== 'up') return 'unsubscribed';
    return hasLocalWaiters(token) ? 'handoff' : 'queue';
  }

  #take(verb: Verb, command: AcquireCommand): Promise<Granted | Busy> {
    const { epoch } = this.redis;
    return new Promise((resolve, reject) =>
      this.#batch.add({
        verb,
        lock: command,
        // Only who may queue has a label there.
        kind: kindOf(command.queue ? command : { ...command, label: undefined }),
        done: (reply) => {
          if (typeof reply !== 'number') {
            if (!('permits' in reply)) {
              // Earlier copies may still arrive, of what waits and gets its lock later, too.
              if (command.queue) this.#strays.add(command, this.redis.epoch - epoch);
              else if (epoch !== this.redis.epoch) this.#orphans.add(command, this.redis.epoch - epoch);
              return resolve(reply);
            }
            void this.cancel(command);
            return reject(otherPermits(command.keys, permitsOf(command.sharing)!, reply.permits));
          }
          if (command.isQueued && !command.wasOffered) this.#channel.checkAlive();
          this.#strays.add(command, this.redis.epoch - epoch);
          resolve(grantOf(reply, fenceCountFor(command.token))!);
        },
        failed: (error) => {
          const isSent = !(error instanceof NotSentError);
          if (isSent) this.#strays.add(command, this.redis.epoch - epoch);
          if (error instanceof RefusedError) void this.cancel(command);
          else {
            const copies = (this.#strays.take(command)?.copies ?? 0) + (isSent || command.isQueued ? 1 : 0);
            if (copies > 0) this.#orphans.add(command, copies);
          }
          reject(error);
        },
      }),
    );
  }

  /**
   * Runs an operation that answers a number: see the locks script.
   *
   * @throws LockUnavailableError
   */
  protected count(verb: Verb, lock: OwnedLock, kind?: string): Promise<number> {
    return new Promise((resolve, reject) =>
      this.#batch.add({ verb, lock, kind, done: (count) => resolve(count as number), failed: reject }),
    );
  }
}
