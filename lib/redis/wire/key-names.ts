import { LockKeyError } from '../../errors/lock-key.error.js';
import { quoted } from '../../errors/messages.js';
import { bulk, bulkHeader } from './resp.js';

/** What our companions of a key are called, after its hash tag. */
const QUEUE = ':queue';
const FENCE = ':fence';
const HOLDERS = ':holders';

const HAS_TAG = /\{[^}]+\}/;
const OUR_OWN = /\}[^]*:(fence|queue|alive|holders)$/;

/** The names of our keys in Redis, for one key prefix. */
export class KeyNames {
  /** Holds the last fence that was given, for all keys of this prefix. */
  readonly fence: string;
  readonly #prefix: string;
  readonly #prefixBytes: number;
  readonly #mayBeginWithBrace: boolean;
  /** What stands around a key in a command, by its length in bytes: most keys have one of a few lengths. */
  readonly #around: Surroundings[] = [];

  constructor(prefix: string) {
    this.#prefix = prefix;
    this.#mayBeginWithBrace = prefix === '' || prefix.startsWith('{');
    this.#prefixBytes = Buffer.byteLength(prefix);
    this.fence = `{${prefix}}${FENCE}`;
  }

  /** @throws LockKeyError for a key that is one of our own names */
  check(key: string): void {
    if (!key.includes('}') && !this.#prefix.includes('}')) return;
    if (this.#mayBeginWithBrace && isNameOfCompanions(this.lock(key))) {
      throw new LockKeyError(
        `A key must not be a {hash tag} and nothing else, as ${quoted(this.lock(key))} is, nor have a "}" without one: its queue would be that of another key.`,
      );
    }
    if (!OUR_OWN.test(this.lock(key))) return;
    throw new LockKeyError(
      `A key that has a {hash tag} must not end in "${FENCE}", "${QUEUE}", ":alive" or ":holders", as ${quoted(this.lock(key))} does: those are names of our own.`,
    );
  }

  /** Holds the owner's token, as a plain string with an expiry, so that `SET … NX PX` of other tools and ours exclude each other. */
  lock(key: string): string {
    return this.#prefix + key;
  }

  /** A lock and its queue, for a script. */
  ofKey(key: string): readonly string[] {
    return [this.lock(key), this.queue(key)];
  }

  /** The key of the app that lives under this name. */
  keyOf(lock: string): string {
    return lock.slice(this.#prefix.length);
  }

  /** The channel on which the source of tokens hears of the locks it is given. */
  wakeChannel(source: string): string {
    return `{${this.#prefix}}:wake:${source}`;
  }

  /**
   * Adds the keys of a lock to a command, encoded: the lock itself, and who waits for it, by arrival. The scripts know by
   * the name of the queue how the others are called; all live in one cluster slot.
   */
  encode(key: string, into: string[]): void {
    const keyBytes = Buffer.byteLength(key);
    const bytes = this.#prefixBytes + keyBytes;
    const prefix = this.#prefix;
    if (!key.includes('{') && !prefix.includes('{')) {
      const { before, queue } = (this.#around[keyBytes] ??= surroundings(prefix, bytes));
      into.push(before, key, queue, key, END);
      return;
    }
    into.push(bulk(this.lock(key)), bulk(this.queue(key)));
  }

  /** Holds who waits for a key, by arrival. */
  queue(key: string): string {
    return this.#tagged(key) + QUEUE;
  }

  /** Holds who shares a key, by the ends of their leases. */
  holders(key: string): string {
    return this.#tagged(key) + HOLDERS;
  }

  #tagged(key: string): string {
    const lock = this.lock(key);
    return HAS_TAG.test(lock) ? lock : `{${lock}}`;
  }
}

/** Whether the companions of this lock, `{a}:queue`, could be those of another one: of `a`, which has no tag and is put in braces for them. */
function isNameOfCompanions(lock: string): boolean {
  return /^\{[^}]*\}$/.test(lock) || (lock.includes('}') && !HAS_TAG.test(lock));
}

interface Surroundings {
  readonly before: string;
  readonly queue: string;
}

const END = `}${QUEUE}\r\n`;

function surroundings(prefix: string, bytes: number): Surroundings {
  return { before: bulkHeader(bytes) + prefix, queue: `\r\n${bulkHeader(bytes + 2 + QUEUE.length)}{${prefix}` };
}
