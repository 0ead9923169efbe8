import { now } from '../clock/deadline.js';
import type { LockUnavailableError } from '../errors/lock-unavailable.error.js';
import type { Held, Renewal } from '../store/lock-store.js';
import type { KeyNames } from './key-names.js';
import type { RedisConnection } from './redis-connection.js';
import { asciiBulk, bulk } from './resp.js';
import { ScriptCall, type ScriptArguments } from './script-call.js';
import { LOCKS } from './scripts/locks.script.js';

/** Operations in one call of the script: Redis does nothing else meanwhile. */
const LARGEST = 128;

/** How often the note of the last fence is brought up to the server's time at least, while locks are taken. */
const BRING_UP_EVERY_MS = 1000;

/** What an operation does: see the locks script. */
export type Verb = 'try' | 'queue' | 'run' | 'deaf' | 'release' | 'cancel' | 'reserve';

/** The operation that brings the note up; it has no token, no lease and no reply. */
const CLOCK = asciiBulk('clock') + asciiBulk('') + asciiBulk('');

/** One operation of the locks script on its way: its keys and arguments encoded, and who wants to know what came of it. */
interface Operation {
  readonly keys: string;
  readonly keyCount: number;
  readonly args: string;
  readonly done: (reply: number | Held) => void;
  readonly failed: (error: LockUnavailableError) => void;
}

/** Collects the operations of one tick and sends them as one call of the locks script. */
export class LockBatch {
  readonly #redis: RedisConnection;
  readonly #names: KeyNames;
  readonly #note: string;
  #operations: Operation[] = [];
  #broughtUpAt = -Infinity;
  #broughtUpAfterDrops = -1;

  constructor(redis: RedisConnection, names: KeyNames) {
    this.#redis = redis;
    this.#names = names;
    this.#note = bulk(names.fence);
  }

  /** @throws LockKeyError for a key that is one of our own names */
  add(verb: Verb, { keys, token, leaseMs }: Renewal, done: (reply: number | Held) => void, failed: (error: LockUnavailableError) => void): void {
    let names = '';
    for (const key of keys) names += this.#namesOf(key);
    const what = keys.length === 1 ? verb : `${verb} ${keys.length}`;
    const args = asciiBulk(what) + asciiBulk(token) + asciiBulk(String(leaseMs));
    const count = this.#operations.push({ keys: names, keyCount: 3 * keys.length, args, done, failed });
    if (count === 1) process.nextTick(this.#flush);
  }

  #namesOf(key: string): string {
    const { lock, queue, alive } = this.#names.lock(key);
    return bulk(lock) + bulk(queue) + bulk(alive);
  }

  readonly #flush = (): void => {
    const operations = this.#operations;
    this.#operations = [];
    if (operations.length <= LARGEST) return this.#send(operations);
    for (let at = 0; at < operations.length; at += LARGEST) this.#send(operations.slice(at, at + LARGEST));
  };

  #send(operations: readonly Operation[]): void {
    const call = new ScriptCall({
      script: LOCKS,
      encode: (again) => this.#encode(operations, again),
      onReply: (reply) => this.#settle(operations, reply),
      onError: (error) => {
        this.#broughtUpAt = -Infinity;
        for (const { failed } of operations) failed(error);
      },
    });
    this.#redis.send(call);
  }

  #encode(operations: readonly Operation[], again: boolean): ScriptArguments {
    const clock = this.#bringsUp() || again;
    let keys = this.#note;
    let keyCount = 1;
    let args = clock ? CLOCK : '';
    for (const operation of operations) {
      keys += operation.keys;
      keyCount += operation.keyCount;
      args += operation.args;
    }
    return { text: keys + args, keyCount, count: keyCount + 3 * (operations.length + (clock ? 1 : 0)) };
  }

  #settle(operations: readonly Operation[], reply: unknown): void {
    const replies = operations.length > 1 && Array.isArray(reply) ? (reply as unknown[]) : operations.map(() => reply);
    for (let index = 0; index < operations.length; index++) {
      const { done, failed } = operations[index]!;
      const reply = LOCKS.decode(replies[index]);
      if (reply instanceof Error) failed(this.#redis.refused(reply));
      else done(reply);
    }
  }

  /** Time for the note of the last fence to be brought up: a second has passed, or this may be another server than before. */
  #bringsUp(): boolean {
    const time = now();
    const { drops } = this.#redis;
    if (drops === this.#broughtUpAfterDrops && time < this.#broughtUpAt + BRING_UP_EVERY_MS) return false;
    this.#broughtUpAfterDrops = drops;
    this.#broughtUpAt = time;
    return true;
  }
}
