/** The share of letters that may differ in a slip of another name. */
const LARGEST_SLIP = 0.4;

/** Finds the name that was probably meant; undefined when none is close. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const byDistance = known
    .map((one) => ({ one, slips: distance(name.toLowerCase(), one.toLowerCase()) }))
    .sort((a, b) => a.slips - b.slips);
  const [best] = byDistance;
  return best && best.slips <= Math.max(1, Math.floor(best.one.length * LARGEST_SLIP)) ? best.one : undefined;
}

/**
 * Counts the letters to insert, drop, replace or swap with their neighbour (Damerau 1964, each letter touched once).
 */
function distance(from: string, to: string): number {
  const rows = [Array.from({ length: to.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= from.length; i++) {
    const [above, row] = [rows[i - 1]!, [i]];
    for (let j = 1; j <= to.length; j++) {
      const replaced = above[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1);
      row[j] = Math.min(replaced, above[j]! + 1, row[j - 1]! + 1);
      const areSwapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      if (areSwapped) row[j] = Math.min(row[j]!, rows[i - 2]![j - 2]! + 1);
    }
    rows.push(row);
  }
  return rows[from.length]![to.length]!;
}
