import type { DemoOutcome } from '../../src/demo-page/demo-messages.js';

/** Returns a table with a line for each race. */
export function report(results: readonly DemoOutcome[]): string {
  const lines = results.map(toLine);
  const titles = Object.keys(lines[0] ?? {}) as (keyof ReturnType<typeof toLine>)[];
  const rows = [titles, ...lines.map((line) => titles.map((title) => String(line[title])))];
  const widths = titles.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const align = (cell: string, column: number): string =>
    column < 4 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0);
  return rows.map((row) => row.map(align).join('  ').trimEnd()).join('\n');
}

function toLine({ scenario, lock, expected, actual, accident, accidents, statuses, cameAgain, ...times }: DemoOutcome) {
  const all = Object.entries(statuses);
  const others = all.filter(([status]) => !status.startsWith('2') && status !== '409' && status !== '422');
  return {
    scenario,
    lock: lock ? 'with' : 'without',
    expected,
    actual,
    accidents: accidents === 0 ? 'none' : `${accidents} ${accident}`,
    '409s': cameAgain + (statuses[409] ?? 0),
    'other errors': others.reduce((sum, [, count]) => sum + count, 0),
    'done/s': times.perSecond,
    'p50 ms': times.p50Ms,
    'p99 ms': times.p99Ms,
  };
}
