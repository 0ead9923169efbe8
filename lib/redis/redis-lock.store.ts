import { otherPermits } from '../errors/other-permits.js';
import { FENCES_OF_A_RUN, fencesFor, isRun, type AcquireCommand, type Cancellation, type Granted, type Held, type KeyView, type LockDetails, type Renewal, type StoreListener } from '../store/lock-store.js';
import { Listeners } from '../store/listeners.js';
import type { QuorumNode } from '../store/quorum-nodes.js';
import { permitsOf } from '../store/sharing.js';
import type { KeyNames } from './key-names.js';
import { KeptTokens } from './kept-tokens.js';
import { kindOf } from './lock-kind.js';
import type { LockOperation, Verb } from './lock-batch.js';
import { Orphans } from './orphans.js';
import { hear } from './hear.js';
import { Questions } from './questions.js';
import { reachRedis, type Operations, type Reach, type ReachOptions } from './reach.js';
import { NotSentError, RefusedError, type Connection } from './redis-connection.js';
import { HOLDERS_OF } from './scripts/holders-of.script.js';
import { INSPECT } from './scripts/inspect.script.js';
import { grantOf } from './scripts/locks.script.js';
import { RENEW } from './scripts/renew.script.js';
import { WakeChannel } from './wake-channel.js';

/** Locks on one Redis: each operation is atomic, and safe to be run twice. */
export class RedisLockStore implements QuorumNode {
  protected readonly redis: Connection;
  /** What renews: the same, if nothing there holds it up. */
  readonly #renewals: Connection;
  readonly #names: KeyNames;
  readonly #batch: Operations;
  readonly #orphans: Orphans;
  readonly #channel: WakeChannel;
  readonly #listeners = new Listeners();
  readonly #kept = new KeptTokens();
  readonly #questions = new Questions(
    (channel, message) => this.redis.publish(channel, message),
    () => this.#channel.doubt(),
  );
  /** Locks that were asked for twice, as the connection dropped: the first copy may still arrive, after the release. */
  readonly #sentTwice = new Set<string>();

  constructor(options: ReachOptions, reach: (options: ReachOptions, connected: (again: boolean) => void) => Reach = reachRedis) {
    const { names, redis, renewals, batch, subscriber } = reach(options, (again) => this.connected(again));
    this.#names = names;
    this.redis = redis;
    this.#renewals = renewals;
    this.#batch = batch;
    this.#orphans = new Orphans((lock) => this.giveUp(lock));
    this.#channel = new WakeChannel(subscriber, {
      message: (text) => hear(text, { listeners: this.#listeners, questions: this.#questions, kept: this.#kept, cancel: (name, lock) => this.cancel({ ...lock, keys: [this.#names.keyOf(name)] }) }),
      up: (again) => {
        if (again) options.log.hears(this.redis.server);
        this.#listeners.doubt();
      },
      down: (cause) => options.log.deaf(this.redis.server, cause),
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

  acquire(command: AcquireCommand): Promise<Granted | Held> {
    if (this.#channel.state === 'new' && command.queue) return this.#firstOf(command);
    if (this.#channel.state === 'new') void this.#channel.open();
    return this.#take(this.#verbFor(command), command);
  }

  async cancel(command: Cancellation): Promise<void> {
    const sentTwice = this.#sentTwice.delete(partOf(command));
    const freed = await this.giveUp(command).catch(() => undefined);
    if (sentTwice || freed === undefined) this.#orphans.add(command);
  }

  async renew(renewals: readonly Renewal[]): Promise<readonly Renewal[]> {
    const owners: Renewal[] = [];
    const keys: string[] = [];
    const args: (string | number)[] = [];
    for (const lock of renewals) {
      for (const key of lock.keys) {
        owners.push(lock);
        keys.push(this.#names.lock(key));
        args.push(lock.token, lock.leaseMs);
      }
    }
    const gone = await this.#renewals.run(RENEW, keys, args);
    return gone.map((number) => owners[number - 1]!);
  }

  reserve(lock: Renewal): Promise<Granted | undefined> {
    return this.#count('reserve', lock).then((fence) => grantOf(fence, FENCES_OF_A_RUN));
  }

  upgrade(lock: Renewal): Promise<Granted | undefined> {
    return this.#count('upgrade', lock).then((fence) => grantOf(fence, fencesFor(lock.token)));
  }

  async downgrade(lock: Renewal): Promise<boolean> {
    return (await this.#count('downgrade', lock)) === lock.keys.length;
  }

  release({ keys, token, leaseMs }: Renewal, keepMs = 0): Promise<boolean> {
    const lock = { keys, token, leaseMs: keepMs || leaseMs, sharing: 'exclusive', label: undefined } as const;
    const { drops } = this.redis;
    return new Promise((resolve, reject) => {
      const operation: LockOperation = {
        verb: keepMs > 0 ? 'keep' : 'release',
        lock,
        done: (freed) => {
          if (keepMs > 0 && freed !== 0) this.#kept.add(token, keepMs);
          if (this.#sentTwice.size > 0 && this.#sentTwice.delete(partOf(lock)) && keepMs === 0) this.#orphans.add(lock);
          // What was sent again may have freed the key by its first try: not a loss.
          resolve(freed === lock.keys.length || drops !== this.redis.drops || operation.again === true);
        },
        failed: (error) => {
          // What is to be kept may as well end with its lease.
          if (keepMs === 0) this.#orphans.add(lock);
          this.#sentTwice.delete(partOf(lock));
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
    if (known || !source || !own) return known;
    await this.#channel.opened();
    if (this.#channel.state !== 'up') return undefined;
    return this.#questions.ask(token, this.#names.wakeChannel(source), this.#names.wakeChannel(own));
  }

  /** By the tokens that it finds: taken blindly and sent twice, it could be the lock of the next one. */
  async forceRelease(key: string): Promise<boolean> {
    const tokens = await this.redis.run(HOLDERS_OF, this.#names.ofKey(key), []);
    await Promise.all(tokens.map((token) => this.#count('force', { keys: [key], token, leaseMs: 0 })));
    return tokens.length > 0;
  }

  async close(): Promise<void> {
    await this.#orphans.close();
    this.#batch.close();
    this.#questions.close();
    this.#channel.close();
    this.redis.close();
    if (this.#renewals !== this.redis) this.#renewals.close();
  }

  /**
   * As `cancel`, but tries once. Answers how many keys were the token's.
   *
   * @throws LockUnavailableError
   */
  protected giveUp(lock: Cancellation): Promise<number> {
    return this.#count('cancel', lock, kindOf(lock));
  }

  /** A connection was made: the first, or again. */
  protected connected(again: boolean): void {
    void this.#orphans.reconnected();
    if (again) this.#listeners.doubt();
  }

  /** Nobody queues before this process can hear of its turn: its place would go to the next. */
  async #firstOf(command: AcquireCommand): Promise<Granted | Held> {
    void this.#channel.open();
    if (!isRun(command.token)) {
      const answer = await this.#take('try', command);
      if (answer.granted) return answer;
    }
    await this.#channel.opened();
    return this.#take(this.#verbFor(command), command);
  }

  #verbFor({ queue, token, waits }: AcquireCommand): Verb {
    if (!queue) return waits ? 'ask' : 'try';
    if (this.#channel.state !== 'up') return 'deaf';
    return isRun(token) ? 'run' : 'queue';
  }

  #take(verb: Verb, command: AcquireCommand): Promise<Granted | Held> {
    const { drops } = this.redis;
    return new Promise((resolve, reject) =>
      this.#batch.add({
        verb,
        lock: command,
        kind: kindOf(command),
        done: (reply) => {
          if (typeof reply !== 'number') {
            if (!('permits' in reply)) {
              // The first copy may still arrive, of what waits and gets its lock later, too.
              if (drops !== this.redis.drops && command.queue) this.#sentTwice.add(partOf(command));
              else if (drops !== this.redis.drops) this.#orphans.add(command);
              return resolve(reply);
            }
            void this.cancel(command);
            return reject(otherPermits(command.keys, permitsOf(command.sharing)!, reply.permits));
          }
          if (command.again) this.#channel.doubt();
          if (drops !== this.redis.drops) this.#sentTwice.add(partOf(command));
          resolve(grantOf(reply, fencesFor(command.token))!);
        },
        failed: (error) => {
          if (error instanceof RefusedError) void this.cancel(command);
          else if (this.#sentTwice.delete(partOf(command)) || command.again || !(error instanceof NotSentError)) this.#orphans.add(command);
          reject(error);
        },
      }),
    );
  }

  #count(verb: Verb, lock: Renewal, kind?: string): Promise<number> {
    return new Promise((resolve, reject) => this.#batch.add({ verb, lock, kind, done: (count) => resolve(count as number), failed: reject }));
  }
}

/** Names a lock, or that part of it that is asked for in one call. */
const partOf = ({ keys, token }: Renewal): string => `${token} ${keys[0]}`;
