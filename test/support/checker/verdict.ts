import type { Section } from '../processes/contenders.js';
import { leftovers, type Census } from './census.js';
import { beganTooLate, fencesBack, register } from './fences.js';
import { type Finding, type Property } from './finding.js';
import { holder, touched } from './holders.js';
import { together } from './together.js';

interface Circumstances {
  /** Whether Redis lost data, or was told to: then a holder may lose a lock within its lease. */
  readonly redisForgets?: boolean;
  /**
   * Whether processes were made to stand still: also between the last look at a lock and the first line of its body,
   * which nobody can help.
   */
  readonly standsStill?: boolean;
  /** What was there in the end. */
  readonly census?: Census;
}

const EXAMPLES = 5;

/** What was found wrong in what all processes did. */
export class Verdict {
  readonly #findings: readonly Finding[];
  /** How many late writes a resource that compares fences would have refused: by holders who had lost the lock. */
  readonly refusedWrites: number;

  constructor(findings: readonly Finding[], refusedWrites: number) {
    this.#findings = findings;
    this.refusedWrites = refusedWrites;
  }

  count(property: Property): number {
    return this.#of(property).length;
  }

  /**
   * Some counterexamples to each, for people to read; to all of S1 to S7, if none is named. Empty when there are none.
   */
  examples(...properties: readonly Property[]): string {
    const asked = properties.length > 0 ? properties : (['S1', 'S2', 'S3', 'S4', 'S5', 'S6', 'S7'] as const);
    return asked
      .flatMap((property) =>
        this.#of(property)
          .slice(0, EXAMPLES)
          .map(({ text }) => text),
      )
      .join('\n\n');
  }

  #of(property: Property): Finding[] {
    return this.#findings.filter((finding) => finding.property === property);
  }
}

/** Judges exclusive locks, readers and writers, and semaphores by what all processes noted. */
export function judge(
  all: readonly Section[],
  { redisForgets = false, standsStill = false, census }: Circumstances = {},
): Verdict {
  const sections = standsStill ? all.filter((section) => !beganTooLate(section)) : all;
  const keys = [...byKey(sections)];
  const registers = [...byKey(all)].map(([key, stays]) => register(key, stays));
  const findings = [
    ...keys.flatMap(([key, stays]) => [...together(key, stays), ...fencesBack(key, stays)]),
    ...registers.flatMap(({ found }) => found),
    ...sections.flatMap(holder),
    ...(redisForgets ? [] : sections.flatMap(touched)),
    ...(census ? leftovers(census) : []),
  ];
  return new Verdict(
    findings,
    registers.reduce((sum, { refused }) => sum + refused, 0),
  );
}

function byKey(sections: readonly Section[]): Map<string, Section[]> {
  const stays = new Map<string, Section[]>();
  for (const section of [...sections].sort((a, b) => a.beganAt - b.beganAt)) {
    for (const key of section.keys) {
      if (!stays.has(key)) stays.set(key, []);
      stays.get(key)!.push(section);
    }
  }
  return stays;
}
