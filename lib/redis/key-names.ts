import { LockKeyError } from '../errors/lock-key.error.js';
import { bulkHeader } from './resp.js';

/** What our companions of a key are called, after its hash tag. */
const QUEUE = ':queue';
const ALIVE = ':alive';
const FENCE = ':fence';

const HAS_TAG = /\{[^}]+\}/;
const OUR_OWN = /\}.*:(fence|queue|alive)$/;

/** The names of our keys in Redis, for one key prefix. */
export class KeyNames {
  /** Holds the last fence that was given, for all keys of this prefix. */
  readonly fence: string;
  readonly #prefix: string;
  readonly #prefixBytes: number;
  /** What stands around a key in a command, by its length in bytes: most keys have one of a few lengths. */
  readonly #around: Surroundings[] = [];

  constructor(prefix: string) {
    this.#prefix = prefix;
    this.#prefixBytes = Buffer.byteLength(prefix);
    this.fence = `{${prefix}}${FENCE}`;
  }

  /** @throws LockKeyError for a key that is one of our own names */
  check(key: string): void {
    if (!key.includes('}') && !this.#prefix.includes('}')) return;
    if (!OUR_OWN.test(this.lock(key))) return;
    throw new LockKeyError(
      `A key that has a {hash tag} must not end in "${FENCE}", "${QUEUE}" or "${ALIVE}", as ${JSON.stringify(this.lock(key))} does: those are names of our own.`,
    );
  }

  /** Holds the owner's token, as a plain string with an expiry, so that `SET … NX PX` of other tools and ours exclude each other. */
  lock(key: string): string {
    return this.#prefix + key;
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
   * Adds the three keys of a lock to a command, encoded: the lock itself; who waits for it, by arrival; and until when each
   * of them counts as alive. All three live in one cluster slot.
   */
  encode(key: string, into: string[]): void {
    const keyBytes = Buffer.byteLength(key);
    const bytes = this.#prefixBytes + keyBytes;
    const prefix = this.#prefix;
    if (!key.includes('{') && !prefix.includes('{')) {
      const { before, queue, alive } = (this.#around[keyBytes] ??= surroundings(prefix, bytes));
      into.push(before, key, queue, key, alive, key, END);
      return;
    }
    const lock = this.lock(key);
    const tagged = HAS_TAG.test(lock);
    const header = bulkHeader(bytes + (tagged ? 0 : 2) + QUEUE.length);
    const tag = tagged ? lock : `{${lock}}`;
    into.push(bulkHeader(bytes), lock, '\r\n', header, tag, `${QUEUE}\r\n`, header, tag, `${ALIVE}\r\n`);
  }
}

interface Surroundings {
  readonly before: string;
  readonly queue: string;
  readonly alive: string;
}

const END = `}${ALIVE}\r\n`;

function surroundings(prefix: string, bytes: number): Surroundings {
  const companion = `${bulkHeader(bytes + 2 + QUEUE.length)}{${prefix}`;
  return { before: bulkHeader(bytes) + prefix, queue: `\r\n${companion}`, alive: `}${QUEUE}\r\n${companion}` };
}
