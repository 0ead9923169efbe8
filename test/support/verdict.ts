import type { Section } from './contenders.js';

/** What was found wrong in what all processes did. */
export interface Verdict {
  /** How often two were inside at once, both by their own clocks. */
  readonly doubleGrants: number;
  /** How often a fence was not larger than that of one who was in before. */
  readonly fencesBack: number;
  /** For people to read. */
  readonly examples: string;
}

const EXAMPLES = 5;

/** Judges exclusive locks, key by key: S1, one holder at a time; S2, fences that grow. */
export function judge(sections: readonly Section[]): Verdict {
  const keys = new Set(sections.flatMap((section) => section.keys));
  const found = [...keys].flatMap((key) => findings(sections.filter((section) => section.keys.includes(key)).sort((a, b) => a.beganAt - b.beganAt)));
  const double = found.filter(({ what }) => what === 'both inside');
  const back = found.filter(({ what }) => what === 'fence not larger');
  return { doubleGrants: double.length, fencesBack: back.length, examples: [...double.slice(0, EXAMPLES), ...back.slice(0, EXAMPLES)].map(({ text }) => text).join('\n\n') };
}

interface Finding {
  readonly what: 'both inside' | 'fence not larger';
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
