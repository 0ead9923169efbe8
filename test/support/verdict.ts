import type { Section } from './contenders.js';

/** What was found wrong in what all processes did. */
export interface Verdict {
  /** How often two were inside at once, both by their own clocks. */
  readonly doubleGrants: number;
  /** How often a fence was not larger than that of one who was in before. */
  readonly fencesBack: number;
  /** How many writes came after one with a larger fence: a register that compares fences refuses them. */
  readonly staleWrites: number;
  /** For people to read. */
  readonly examples: string;
}

const EXAMPLES = 5;

/** Judges exclusive locks, key by key: S1, one holder at a time; S2, fences that grow; S5, that only who has lost the lock writes too late. */
export function judge(sections: readonly Section[]): Verdict {
  const keys = [...new Set(sections.flatMap((section) => section.keys))];
  const ofKey = (key: string) => sections.filter((section) => section.keys.includes(key));
  const stale = keys.flatMap((key) => staleWrites(ofKey(key)));
  const found = [...keys.flatMap((key) => findings(ofKey(key).sort((a, b) => a.beganAt - b.beganAt))), ...stale.filter(({ late }) => late.isHeld).map(({ late, newer }) => finding('wrote too late', newer, late))];
  const of = (what: Finding['what']) => found.filter((finding) => finding.what === what);
  const examples = [of('both inside'), of('fence not larger'), of('wrote too late')].flatMap((some) => some.slice(0, EXAMPLES).map(({ text }) => text));
  return { doubleGrants: of('both inside').length, fencesBack: of('fence not larger').length, staleWrites: stale.length, examples: examples.join('\n\n') };
}

/** What a register that remembers the largest fence it has seen would refuse, each with the write that came before it. */
function staleWrites(sections: readonly Section[]): { readonly late: Section; readonly newer: Section }[] {
  const writes = sections.filter(({ wroteAt }) => wroteAt !== undefined).sort((a, b) => a.wroteAt! - b.wroteAt!);
  let newest = writes[0];
  return writes.flatMap((late) => {
    const newer = newest!;
    if (late.fence >= newer.fence) newest = late;
    return late.fence < newer.fence ? [{ late, newer }] : [];
  });
}

interface Finding {
  readonly what: 'both inside' | 'fence not larger' | 'wrote too late';
  readonly text: string;
}

/** Compares each with the one before it that stayed longest, and with the one before it that had the largest fence. */
function findings(sections: readonly Section[]): Finding[] {
  const found: Finding[] = [];
  let [longest, largest] = [sections[0], sections[0]];
  for (const section of sections.slice(1)) {
    if (section.beganAt < longest!.endedAt) found.push(finding('both inside', longest!, section));
    if (section.fence <= largest!.fence) found.push(finding('fence not larger', largest!, section));
    if (section.endedAt > longest!.endedAt) longest = section;
    if (section.fence > largest!.fence) largest = section;
  }
  return found;
}

function finding(what: Finding['what'], before: Section, after: Section): Finding {
  const line = ({ token, fence, beganAt, endedAt, isHeld }: Section) => {
    const at = (ms: number) => `${(ms - before.beganAt).toFixed(1)} ms`;
    return `  ${token} fence ${fence} inside from ${at(beganAt)} to ${at(endedAt)}${isHeld ? '' : ', lost then'}`;
  };
  return { what, text: `${after.keys.join(', ')}: ${what}\n${line(before)}\n${line(after)}` };
}
