import type { Section } from '../processes/contenders.js';

/** How long to look at what follows a fault, in ms. */
const AFTERMATH_MS = 15_000;

/** The longest time after a fault in which nobody was given a lock, in ms. */
export function longestSilenceMs(sections: readonly Section[], faultAt: number): number {
  const grants = sections.map(({ beganAt }) => beganAt).filter((at) => at > faultAt && at < faultAt + AFTERMATH_MS);
  return Math.max(...[faultAt, ...grants].map((at, index) => (grants[index] ?? at) - at));
}

/** How long after a fault each lock that was held then and lost by it ended, in ms. */
export function lostAfter(sections: readonly Section[], faultAt: number, withinMs: number): number[] {
  const hit = sections.filter(
    ({ beganAt, endedAt, isHeld }) => !isHeld && beganAt < faultAt && endedAt > faultAt && endedAt < faultAt + withinMs,
  );
  return hit.map(({ endedAt }) => endedAt - faultAt);
}
