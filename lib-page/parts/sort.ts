export type SortValue = number | string | null;

export interface Order {
  readonly column: number;
  readonly isDescending: boolean;
}

/** Sorts rows; those of which nobody knows the value come last. */
export function sorted<Row>(rows: readonly Row[], by: (row: Row) => SortValue, isDescending: boolean): Row[] {
  return rows.toSorted((a, b) => {
    const [first, second] = [by(a), by(b)];
    if (first === null || second === null) return Number(first === null) - Number(second === null);
    return isDescending ? compare(second, first) : compare(first, second);
  });
}

function compare(a: number | string, b: number | string): number {
  return typeof a === 'number' && typeof b === 'number' ? a - b : String(a).localeCompare(String(b));
}
