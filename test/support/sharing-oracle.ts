import type { Section } from './contenders.js';

/** Sections, by the time of entry, that somebody was inside of at the same time though one of the two wrote. */
export function notAlone(sections: readonly Section[]): Section[] {
  let anybodyUntil = -Infinity;
  let writerUntil = -Infinity;
  return sections.filter(({ mode, beganAt, endedAt }) => {
    const met = beganAt < (mode === 'read' ? writerUntil : anybodyUntil);
    anybodyUntil = Math.max(anybodyUntil, endedAt);
    if (mode !== 'read') writerUntil = Math.max(writerUntil, endedAt);
    return met;
  });
}

/** Sections, by the time of entry, whose fence is not their own, or not larger than that of a writer before; of a writer: than all before. */
export function fencesOutOfOrder(sections: readonly Section[]): Section[] {
  const seen = new Set<number>();
  let ofAnybody = 0;
  let ofWriters = 0;
  return sections.filter(({ mode, fence }) => {
    const wrong = seen.has(fence) || fence <= (mode === 'read' ? ofWriters : ofAnybody);
    seen.add(fence);
    ofAnybody = Math.max(ofAnybody, fence);
    if (mode !== 'read') ofWriters = Math.max(ofWriters, fence);
    return wrong;
  });
}

/** How many were inside at the same time, at most. */
export function mostAtOnce(sections: readonly Section[]): number {
  const steps = sections.flatMap(({ beganAt, endedAt }) => [
    { at: beganAt, by: 1 },
    { at: endedAt, by: -1 },
  ]);
  let inside = 0;
  // Who goes at the moment when another comes goes first.
  return steps.sort((a, b) => a.at - b.at || a.by - b.by).reduce((most, { by }) => Math.max(most, (inside += by)), 0);
}

/** How many were inside at the same time, on the average of the time when somebody was. */
export function averageAtOnce(sections: readonly Section[]): number {
  let until = -Infinity;
  let anybodyMs = 0;
  let togetherMs = 0;
  for (const { beganAt, endedAt } of sections) {
    anybodyMs += Math.max(0, endedAt - Math.max(beganAt, until));
    togetherMs += endedAt - beganAt;
    until = Math.max(until, endedAt);
  }
  return togetherMs / anybodyMs;
}

/** The longest that any of them waited, in ms. */
export function longestWaitMs(sections: readonly Section[]): number {
  return sections.reduce((longest, { askedAt, beganAt }) => Math.max(longest, beganAt - askedAt), 0);
}
