import type { RaceResult } from './run-race.js';

/** Returns a table with a line for each race. */
export function report(results: readonly RaceResult[]): string {
  const lines = results.map(toLine);
  const titles = Object.keys(lines[0] ?? {}) as (keyof ReturnType<typeof toLine>)[];
  const rows = [titles, ...lines.map((line) => titles.map((title) => String(line[title])))];
  const widths = titles.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const align = (cell: string, column: number) =>
    column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0);
  return rows.map((row) => row.map(align).join('  ')).join('\n');
}

function toLine({ name, expected, actual, responses, seconds }: RaceResult) {
  const statusCount = (status: number) => responses.filter((answer) => answer.status === status).length;
  const times = responses.map(({ ms }) => ms).sort((a, b) => a - b);
  const percentile = (share: number) => Math.round(times[Math.ceil(times.length * share) - 1] ?? 0);
  return {
    '': name,
    'expected balance': expected,
    actual,
    'lost updates': actual - expected,
    '409s': statusCount(409),
    'other errors': responses.length - statusCount(200) - statusCount(409),
    'withdrawals/s': Math.round(statusCount(200) / seconds),
    'p50 ms': percentile(0.5),
    'p99 ms': percentile(0.99),
  };
}

/**
 * A race is exact when every withdrawal that was confirmed is in the balance, and Redis and the apps did their part.
 */
export function isExact({ expected, actual, responses }: RaceResult): boolean {
  const wasConfirmed = responses.some(({ status }) => status === 200);
  return wasConfirmed && actual === expected && responses.every(({ status }) => status === 200 || status === 409);
}
