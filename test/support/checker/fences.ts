import type { Section } from '../processes/contenders.js';
import { finding, type Finding } from './finding.js';

/**
 * S2, of one key, by the time of entry: a fence is larger than those of all who were in before, and nobody else's.
 * Those who share the key come in at once: of them, only who asked when the other was in already must have the larger
 * one, and readers not even that.
 */
export function fencesBack(key: string, sections: readonly Section[]): Finding[] {
  const holders = new Map<number, Section>();
  const [ofAll, ofWriters] = [new Largest(), new Largest()];
  return sections.flatMap((section) => {
    const before = holders.get(section.fence) ?? (section.mode === 'read' ? ofWriters : ofAll).before(section);
    holders.set(section.fence, section);
    ofAll.add(section);
    if (section.mode !== 'read') ofWriters.add(section);
    return before && section.fence <= before.fence ? [finding('S2', 'fence not larger', key, [before, section])] : [];
  });
}

/** Those with the largest fence so far, by the time of entry. */
class Largest {
  readonly #since: { readonly at: number; readonly section: Section }[] = [];

  add(section: Section): void {
    const { section: largest = section } = this.#since.at(-1) ?? {};
    this.#since.push({ at: section.beganAt, section: section.fence > largest.fence ? section : largest });
  }

  /** Of permits, only those count whose grant is known to be the earlier one. */
  before({ mode, askedAt }: Section): Section | undefined {
    return this.#since.findLast(({ at }) => mode !== 'permit' || at < askedAt)?.section;
  }
}

/** Whether the lease was over on the first line of the body. */
export const beganTooLate = ({ beganAt, goodUntil }: Section): boolean => goodUntil <= beganAt;

/** In one stall of a process, several locks may be over that it was given in one answer. */
const ONE_STALL_MS = 100;

/**
 * How often a process stood still just before the first line of a body, or of several that began in the same moment.
 */
export function stallsBeforeBegin(sections: readonly Section[]): number {
  const late = sections.filter(beganTooLate).sort((a, b) => a.pid - b.pid || a.beganAt - b.beganAt);
  return late.filter(
    ({ pid, beganAt }, at) => late[at - 1]?.pid !== pid || beganAt - late[at - 1]!.beganAt > ONE_STALL_MS,
  ).length;
}

/**
 * What a resource does that remembers the largest fence it has seen, when all wrote to it who had the key for
 * themselves.
 */
export interface Register {
  /** S5: late writes that it took, and good ones that it did not. */
  readonly found: readonly Finding[];
  /** How many late writes it refused, as it should. */
  readonly refused: number;
}

export function register(key: string, sections: readonly Section[]): Register {
  const writes = sections
    .filter(({ mode, wroteAt }) => wroteAt !== undefined && (mode === 'exclusive' || mode === 'write'))
    .sort((a, b) => a.wroteAt! - b.wroteAt!);
  const found: Finding[] = [];
  let refused = 0;
  let largest = writes[0]!;
  let latest: Section | undefined;
  for (const write of writes) {
    const isTaken = write.fence >= largest.fence;
    if (!isTaken) refused++;
    if (!isTaken && write.isHeld)
      found.push(finding('S5', 'the write of a holder would be refused', key, [largest, write]));
    // Whoever came in before one who has written is too late, whatever the fences say.
    if (isTaken && latest && write.beganAt < latest.beganAt)
      found.push(finding('S5', 'a late write would not be refused', key, [latest, write]));
    if (isTaken) largest = write;
    // When one that stood still began says nothing of when it was given the key.
    if (!beganTooLate(write) && (!latest || write.beganAt > latest.beganAt)) latest = write;
  }
  return { found, refused };
}
