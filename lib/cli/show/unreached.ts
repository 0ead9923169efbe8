import type { LockList } from '../../core/lock-list.js';
import { shownText } from './table.js';

const MOST_LINES = 5;

/** Says what could not be reached, in a few lines. */
export function unreachedLines(unreached: LockList['unreached']): string[] {
  const lines = unreached.slice(0, MOST_LINES).map(({ message }) => shownText(message));
  const more = unreached.length - lines.length;
  return more > 0 ? [...lines, `${more} more did not answer or could not be asked: --json names them all.`] : lines;
}
