import type { Section } from '../processes/contenders.js';
import { finding, type Finding } from './finding.js';

/**
 * S1, of one key, by the time of entry: a writer is alone, readers share, and of a semaphore no more are inside than it
 * has permits.
 */
export function together(key: string, sections: readonly Section[]): Finding[] {
  let inside: Section[] = [];
  return sections.flatMap((section) => {
    inside = inside.filter(({ endedAt }) => endedAt > section.beganAt);
    const others = inside;
    inside = [...others, section];
    const met = others.find((other) => !share(other, section));
    if (met) return [finding('S1', 'both inside at once', key, [met, section])];
    const { permits } = section;
    return permits !== undefined && others.length >= permits
      ? [finding('S1', `${others.length + 1} inside at once, of ${permits} permits`, key, inside)]
      : [];
  });
}

function share(one: Section, other: Section): boolean {
  // It writes in a call that is nested in that of its reader.
  if (one.token === other.token && one.mode === 'read' && other.mode === 'write') return true;
  return one.mode === other.mode && (one.mode === 'read' || one.mode === 'permit');
}
