import type { Section } from './contenders.js';

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
