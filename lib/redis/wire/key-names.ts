import { LockKeyError } from '../../errors/lock-key.error.js';
import { quoted } from '../../errors/messages.js';
import { bulk, bulkHeader } from './resp.js';

/** The names of a key's companions, after its hash tag. */
const QUEUE = ':queue';
const FENCE = ':fence';
const HOLDERS = ':holders';

const HAS_TAG = /\{[^}]+\}/;
const OUR_OWN = /\}[^]*:(fence|queue|alive|holders)$/;

/** Names our keys in Redis, for one key prefix. */
export class KeyNames {
  /** The fence counter of all keys of this prefix. */
  readonly fence: string;
  readonly #prefix: string;
  readonly #prefixBytes: number;
  readonly #mayBeginWithBrace: boolean;
  /** The text around a key in a command, by the length of the key in bytes: most keys have one of a few lengths. */
  readonly #around: Surroundings[] = [];

  constructor(prefix: string) {
    this.#prefix = prefix;
    this.#mayBeginWithBrace = prefix === '' || prefix.startsWith('{');
    this.#prefixBytes = Buffer.byteLength(prefix);
    this.fence = `{${prefix}}${FENCE}`;
  }

  /** @throws LockKeyError for a key that is a name which the library uses itself */
  check(key: string): void {
    if (!key.includes('}') && !this.#prefix.includes('}')) return;
    if (this.#mayBeginWithBrace && sharesCompanions(this.lock(key))) {
      throw new LockKeyError(
        `A key must not be a {hash tag} and nothing else, as ${quoted(this.lock(key))} is, ` +
          'nor have a "}" without one: its queue would be that of another key.',
      );
    }
    if (!OUR_OWN.test(this.lock(key))) return;
    throw new LockKeyError(
      `A key that has a {hash tag} must not end in "${FENCE}", "${QUEUE}", ":alive" or ":holders", ` +
        `as ${quoted(this.lock(key))} does: the library uses those names itself.`,
    );
  }

  /**
   * Names the lock: a plain string with an expiry that holds the owner's token. So `SET … NX PX` of other tools and
   * ours exclude each other.
   */
  lock(key: string): string {
    return this.#prefix + key;
  }

  /** Names a lock and its queue, for a script. */
  ofKey(key: string): readonly string[] {
    return [this.lock(key), this.queue(key)];
  }

  /** Returns the key of the app that has this name in Redis. Undefined for a name that no key of the app can have. */
  keyOf(lock: string): string | undefined {
    if (!lock.startsWith(this.#prefix)) return undefined;
    const key = lock.slice(this.#prefix.length);
    try {
      this.check(key);
      return key;
    } catch {
      return undefined;
    }
  }

  /** Names the wake channel of a source of tokens. */
  wakeChannel(source: string): string {
    return `{${this.#prefix}}:wake:${source}`;
  }

  /**
   * Encodes the names of a lock and of its queue. The scripts derive the other names from that of the queue; all lie in
   * one cluster slot.
   */
  encode(key: string): string {
    const keyBytes = Buffer.byteLength(key);
    const bytes = this.#prefixBytes + keyBytes;
    const prefix = this.#prefix;
    if (!key.includes('{') && !prefix.includes('{')) {
      const { before, queue } = (this.#around[keyBytes] ??= surroundings(prefix, bytes));
      return before + key + queue + key + END;
    }
    return bulk(this.lock(key)) + bulk(this.queue(key));
  }

  /** Names the queue of a key: its waiters, in order of arrival. */
  queue(key: string): string {
    return this.#tagged(key) + QUEUE;
  }

  /** Names the holders of a shared key, in order of the ends of their leases. */
  holders(key: string): string {
    return this.#tagged(key) + HOLDERS;
  }

  #tagged(key: string): string {
    const lock = this.lock(key);
    return HAS_TAG.test(lock) ? lock : `{${lock}}`;
  }
}

/**
 * Whether the companions of this lock could be those of another one: `{a}` and `a`, which is put in braces for them,
 * both have `{a}:queue`.
 */
function sharesCompanions(lock: string): boolean {
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
