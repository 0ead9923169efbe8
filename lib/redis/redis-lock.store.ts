import { fencesFor, type AcquireCommand, type Granted, type Held, type LockStore, type Renewal, type StoreListener } from '../store/lock-store.js';
import { KeyNames } from './key-names.js';
import { LockBatch, type LockOperation, type Verb } from './lock-batch.js';
import { Orphans } from './orphans.js';
import { redisClient, type RedisConnectionOption } from './redis-client.js';
import { NotSentError, RedisConnection, RefusedError, type OutageLog } from './redis-connection.js';
import { HOLDER } from './scripts/holder.script.js';
import { grantOf } from './scripts/locks.script.js';
import { RENEW } from './scripts/renew.script.js';
import { WakeChannel } from './wake-channel.js';
import { wakeMessage } from './wake-message.js';

export interface RedisLockStoreOptions {
  readonly connection: RedisConnectionOption;
  readonly keyPrefix: string;
  readonly commandTimeoutMs: number;
  readonly log: OutageLog;
}

/** Locks on one Redis: each operation is atomic, and safe to be run twice. */
export class RedisLockStore implements LockStore {
  readonly #redis: RedisConnection;
  readonly #names: KeyNames;
  readonly #batch: LockBatch;
  readonly #orphans: Orphans;
  readonly #channel: WakeChannel;
  readonly #listeners: StoreListener[] = [];
  /** Tokens of locks that were asked for twice, as the connection dropped: the first copy may still arrive, after the release. */
  readonly #sentTwice = new Set<string>();

  constructor({ connection, keyPrefix, commandTimeoutMs, log }: RedisLockStoreOptions) {
    const client = redisClient(connection, commandTimeoutMs);
    this.#names = new KeyNames(keyPrefix);
    this.#orphans = new Orphans((lock) => this.#count('cancel', lock));
    this.#redis = new RedisConnection(client, commandTimeoutMs, log, () => void this.#orphans.reconnected());
    this.#batch = new LockBatch(this.#redis, this.#names);
    this.#channel = new WakeChannel(client.redis, commandTimeoutMs, {
      message: (text) => this.#heard(text),
      up: (again) => {
        if (again) log.hears(this.#redis.server);
        for (const listener of this.#listeners) listener.missed();
      },
      down: (cause) => log.deaf(this.#redis.server, cause),
    });
  }

  open(): void {
    this.#redis.open();
    void this.#channel.open();
  }

  listen(listener: StoreListener): void {
    this.#listeners.push(listener);
    this.#channel.name(this.#names.wakeChannel(listener.source));
  }

  acquire(command: AcquireCommand): Promise<Granted | Held> {
    return command.queue && this.#channel.state === 'new' ? this.#firstOf(command) : this.#take(this.#verbFor(command), command);
  }

  async cancel(command: Renewal): Promise<void> {
    await this.#count('cancel', command).catch(() => this.#orphans.add(command));
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
    const gone = await this.#redis.run(RENEW, keys, args);
    return gone.map((number) => owners[number - 1]!);
  }

  async reserve(lock: Renewal): Promise<Granted | undefined> {
    const fence = await this.#count('reserve', lock);
    return fence === 0 ? undefined : grantOf(fence);
  }

  release(lock: Renewal): Promise<boolean> {
    const { drops } = this.#redis;
    return new Promise((resolve, reject) => {
      const operation: LockOperation = {
        verb: 'release',
        lock,
        done: (freed) => {
          if (this.#sentTwice.delete(lock.token)) this.#orphans.add(lock);
          // What was sent again may have freed the key by its first try: not a loss.
          resolve(freed === lock.keys.length || drops !== this.#redis.drops || operation.again === true);
        },
        failed: (error) => {
          this.#orphans.add(lock);
          reject(error);
        },
      };
      this.#batch.add(operation);
    });
  }

  async isLocked(key: string): Promise<boolean> {
    return (await this.#holder(key)) !== undefined;
  }

  /** By the token that it finds: taken blindly and sent twice, it could be the lock of the next one. */
  async forceRelease(key: string): Promise<boolean> {
    const token = await this.#holder(key);
    if (token === undefined) return false;
    await this.#count('force', { keys: [key], token, leaseMs: 0 });
    return true;
  }

  async close(): Promise<void> {
    this.#orphans.close();
    this.#channel.close();
    this.#redis.close();
  }

  /** Nobody queues before this process can hear of its turn: its place would go to the next. */
  async #firstOf(command: AcquireCommand): Promise<Granted | Held> {
    const opened = this.#channel.open();
    if (fencesFor(command.token) === 1) {
      const answer = await this.#take('try', command);
      if (answer.granted) return answer;
    }
    await opened;
    return this.#take(this.#verbFor(command), command);
  }

  #verbFor({ queue, token }: AcquireCommand): Verb {
    if (!queue) return 'try';
    if (this.#channel.state !== 'up') return 'deaf';
    return fencesFor(token) > 1 ? 'run' : 'queue';
  }

  #take(verb: Verb, command: AcquireCommand): Promise<Granted | Held> {
    const { drops } = this.#redis;
    return new Promise((resolve, reject) =>
      this.#batch.add({
        verb,
        lock: command,
        done: (reply) => {
          if (typeof reply !== 'number') return resolve(reply);
          if (command.again) this.#channel.doubt();
          if (drops !== this.#redis.drops) this.#sentTwice.add(command.token);
          resolve(grantOf(reply));
        },
        failed: (error) => {
          if (error instanceof RefusedError) void this.cancel(command);
          else if (command.again || !(error instanceof NotSentError)) this.#orphans.add(command);
          reject(error);
        },
      }),
    );
  }

  #count(verb: 'cancel' | 'reserve' | 'force', lock: Renewal): Promise<number> {
    return new Promise((resolve, reject) => this.#batch.add({ verb, lock, done: (count) => resolve(count as number), failed: reject }));
  }

  #holder(key: string): Promise<string | undefined> {
    return this.#redis.run(HOLDER, [this.#names.lock(key)], []);
  }

  #heard(text: string): void {
    const message = wakeMessage(text);
    if (!message) return;
    const { token } = message;
    if (message.kind === 'wanted') return this.#listeners.forEach((listener) => listener.wanted(token));
    if (this.#listeners.some((listener) => listener.granted(token, message.grant))) return;
    // Nobody waits for it any more: on to the next.
    void this.cancel({ keys: [this.#names.keyOf(message.lock)], token, leaseMs: message.leaseMs });
  }
}
