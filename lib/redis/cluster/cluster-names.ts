import { LockKeyError } from '../../errors/lock-key.error.js';
import { quoted } from '../../errors/messages.js';
import { KeyNames } from '../wire/key-names.js';
import { slotOf } from './cluster-slot.js';

/** Names our keys in a cluster, for one key prefix. */
export class ClusterNames extends KeyNames {
  /** Begins the hash tags of the fence counters. It has no braces, which would end the tag. */
  readonly #tagBase: string;
  /** By slot: a hash tag that lies in it, as far as they were searched. */
  readonly #tags: (string | undefined)[] = [];
  #searched = 0;

  constructor(prefix: string) {
    super(prefix);
    this.#tagBase = prefix.replaceAll(/[{}]/g, '');
  }

  /** @throws LockKeyError for a key that is a name of the library itself, or whose queue would lie in another slot */
  override check(key: string): void {
    super.check(key);
    const lock = this.lock(key);
    if (!lock.includes('}') || slotOf(lock) === slotOf(this.queue(key))) return;
    throw new LockKeyError(
      'On a Redis Cluster a "}" in a key must be the end of its {hash tag}, the first braces in it, ' +
        `as it is not in ${quoted(lock)}: its queue would lie in another slot.`,
    );
  }

  /** Returns the slot of a key of the app. */
  slot(key: string): number {
    return slotOf(this.lock(key));
  }

  /**
   * Names the fence counter of a slot. All processes find the same name: its hash tag ends in the first number that
   * lies there.
   */
  fenceIn(slot: number): string {
    return `${this.#tagIn(slot)}:fence`;
  }

  /**
   * Names a key that never exists. While a slot moves from node to node, Redis refuses a call with several keys when
   * one of them is missing. So a script that gets this key too never runs where only a part of a lock is: what it
   * does not find does not exist. Nor does it write a key that is still to arrive, which would stop the move.
   */
  absentIn(slot: number): string {
    return `${this.#tagIn(slot)}:none:fence`;
  }

  /** Names a lock and its queue, and a key of their slot that never exists. */
  override ofKey(key: string): readonly string[] {
    return [...super.ofKey(key), this.absentIn(this.slot(key))];
  }

  #tagIn(slot: number): string {
    while (this.#tags[slot] === undefined) {
      const tag = this.#tagBase + (this.#searched++).toString(36);
      this.#tags[slotOf(tag)] ??= tag;
    }
    return `{${this.#tags[slot]}}`;
  }
}
