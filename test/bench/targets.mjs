import { short } from './figures.mjs';

/**
 * A figure of ours beside what it should be: `solid` must hold, `goal` is what a prototype reached or nearly did.
 * The lower the better, unless `atLeast` is set.
 */
export function target({ what, value, solid, goal, unit = '', atLeast = false }) {
  const sign = atLeast ? '≥' : '≤';
  const marked = (limit) => {
    if (limit === undefined) return '';
    const reached = atLeast ? value >= limit : value <= limit;
    return `${reached ? '✓' : '✗'} ${sign} ${limit}${unit}`;
  };
  return [what, short(value) + unit, marked(solid), marked(goal)];
}

export const TARGET_HEAD = ['target', 'measured', 'solid', 'goal'];
