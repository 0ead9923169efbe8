import { LockKeyError } from '../../errors/lock-key.error.js';
import { quoted } from '../../errors/messages.js';
import { KeyNames } from '../wire/key-names.js';
import { slotOf } from './cluster-slot.js';

/** The names of our keys in a cluster, for one key prefix. */
export class ClusterNames extends KeyNames {
  /** What the tags of the notes begin with. Braces in it would end them. */
  readonly #tagBase: string;
  /** For each slot a tag that lies in it, as far as they have been looked for. */
  readonly #tags: (string | undefined)[] = [];
  #looked = 0;

  constructor(prefix: string) {
    super(prefix);
    this.#tagBase = prefix.replaceAll(/[{}]/g, '');
  }

  /** @throws LockKeyError for a key that is one of our own names, or whose queue would lie in another slot */
  override check(key: string): void {
    super.check(key);
    const lock = this.lock(key);
    if (!lock.includes('}') || slotOf(lock) === slotOf(this.queue(key))) return;
    throw new LockKeyError(
      `On a Redis Cluster a "}" in a key must be the end of its {hash tag}, the first braces in it, as it is not in ${quoted(lock)}: its queue would lie in another slot.`,
    );
  }

  /** In which slot a key of the app lies. */
  slot(key: string): number {
    return slotOf(this.lock(key));
  }

  /** Holds the last fence that was given in a slot. The same for all processes: its tag is the first number that lies there. */
  fenceIn(slot: number): string {
    return `${this.#tagIn(slot)}:fence`;
  }

  /**
   * Never exists. Redis refuses a call of several keys, one of which is missing, for as long as their slot moves from node to
   * node. So a script that is given this key too never runs where only a part of a lock is: what it looks for and does not
   * find is nowhere. Nor does it write beside what is still to come, which would stop the move.
   */
  absentIn(slot: number): string {
    return `${this.#tagIn(slot)}:none:fence`;
  }

  /** A lock and its queue; and a key of their slot that never exists. */
  override ofKey(key: string): readonly string[] {
    return [...super.ofKey(key), this.absentIn(this.slot(key))];
  }

  #tagIn(slot: number): string {
    while (this.#tags[slot] === undefined) {
      const tag = this.#tagBase + (this.#looked++).toString(36);
      this.#tags[slotOf(tag)] ??= tag;
    }
    return `{${this.#tags[slot]}}`;
  }
}
