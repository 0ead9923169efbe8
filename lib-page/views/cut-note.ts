import type { Cut } from '../../lib/page/page-snapshot.js';
import { count } from '../parts/format.js';

/** Says how long a list is, and which part of it is there. */
export function cutNote({ total, items }: Cut<unknown>, which: string, remedy = '; filter to see others'): string {
  if (total <= items.length) return total === 0 ? '' : count(total);
  return `the ${count(items.length)} ${which}, of ${count(total)}${remedy}`;
}
