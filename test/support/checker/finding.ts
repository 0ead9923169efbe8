import type { Section } from '../processes/contenders.js';

/** What must hold, as docs/reliability.md lists it. */
export type Property = 'S1' | 'S2' | 'S3' | 'S4' | 'S5' | 'S6' | 'S7';

export interface Finding {
  readonly property: Property;
  /** For people to read. */
  readonly text: string;
}

/** A counterexample: what is wrong with which key, and who was part of it, in ms since the first of them came in. */
export function finding(property: Property, what: string, key: string, sections: readonly Section[]): Finding {
  const inOrder = [...sections].sort((a, b) => a.beganAt - b.beganAt);
  return {
    property,
    text: [`${property} ${key}: ${what}`, ...inOrder.map((section) => `  ${line(section, inOrder[0]!.beganAt)}`)].join(
      '\n',
    ),
  };
}

function line(section: Section, zero: number): string {
  const {
    pid,
    token,
    mode,
    permits,
    fence,
    beganAt,
    endedAt,
    goodUntil,
    isHeld,
    abortedAt,
    lost,
    wroteAt,
    silentAt,
    unlocked,
    unlockedAt,
    refused,
  } = section;
  const at = (ms: number) => `${(ms - zero).toFixed(1)} ms`;
  const parts = [
    `inside from ${at(beganAt)} to ${at(endedAt)}${isHeld ? '' : ', lost then'}`,
    `lease until ${at(goodUntil)}`,
  ];
  if (abortedAt !== undefined) parts.push(`signal aborted at ${at(abortedAt)}${lost ? ` (${lost})` : ''}`);
  if (silentAt !== undefined) parts.push(`signal silent at ${at(silentAt)}`);
  if (wroteAt !== undefined) parts.push(`wrote at ${at(wroteAt)}`);
  if (unlockedAt !== undefined) parts.push(`unlock answered ${unlocked} at ${at(unlockedAt)}`);
  if (refused !== undefined) parts.push(`its call failed with ${refused}`);
  const kind = permits ? `${mode} 1 of ${permits}` : mode;
  return `process ${pid}, token ${token}, ${kind}, fence ${fence}: ${parts.join(', ')}`;
}
