import { LockKeyError } from '../errors/lock-key.error.js';

/** The key of a lock and its companions, which live in the key's own cluster slot. */
export interface LockNames {
  /** Holds the owner's token, as a plain string with an expiry, so that `SET … NX PX` of other tools and ours exclude each other. */
  readonly lock: string;
  /** Who waits, by arrival. */
  readonly queue: string;
  /** Until when each of them counts as alive. */
  readonly alive: string;
}

/** The names of our keys in Redis, for one key prefix. */
export class KeyNames {
  /** Holds the last fence that was given, for all keys of this prefix. */
  readonly fence: string;
  readonly #prefix: string;

  constructor(prefix: string) {
    this.#prefix = prefix;
    this.fence = `{${prefix}}:fence`;
  }

  /** The channel on which the source of tokens hears of the locks it is given. */
  wakeChannel(source: string): string {
    return `{${this.#prefix}}:wake:${source}`;
  }

  /** The key of the app that lives under this name. */
  keyOf(lock: string): string {
    return lock.slice(this.#prefix.length);
  }

  /** @throws LockKeyError for a key that is one of our own names */
  lock(key: string): LockNames {
    const lock = this.#prefix + key;
    const tag = lock.includes('{') ? checked(lock) : `{${lock}}`;
    return { lock, queue: `${tag}:queue`, alive: `${tag}:alive` };
  }
}

const OUR_OWN = /\}.*:(fence|queue|alive)$/;

/** A key may bring a cluster hash tag of its own; then it could be the name of another key's companion. */
function checked(lock: string): string {
  if (OUR_OWN.test(lock)) {
    throw new LockKeyError(`A key that has a {hash tag} must not end in ":fence", ":queue" or ":alive", as ${JSON.stringify(lock)} does: those are names of our own.`);
  }
  return /\{[^}]+\}/.test(lock) ? lock : `{${lock}}`;
}
