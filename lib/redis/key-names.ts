import { LockKeyError } from '../errors/lock-key.error.js';

/** The names of our keys in Redis, for one key prefix. */
export class KeyNames {
  /** Holds the last fence that was given, for all keys of this prefix. */
  readonly fence: string;
  readonly #prefix: string;

  constructor(prefix: string) {
    this.#prefix = prefix;
    this.fence = `{${prefix}}:fence`;
  }

  /** Holds the owner's token, as a plain string with an expiry, so that `SET … NX PX` of other tools and ours exclude each other. */
  lock(key: string): string {
    const name = this.#prefix + key;
    if (name === this.fence) throw new LockKeyError(`The key ${JSON.stringify(key)} is the name of our own note of the last fence. Use another key or "keyPrefix".`);
    return name;
  }
}
