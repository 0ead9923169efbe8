/** `LAB=long` runs the same tests at their full size. */
export const LONG = process.env['LAB'] === 'long';

/** How much of something: in `npm test`, and in the long form. */
export const sized = (short: number, long: number): number => (LONG ? long : short);

/** The smallest value that this share of them does not exceed. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)]!;
}

/** Figures of a run, for the long form's reader. */
export function figures(name: string, values: Readonly<Record<string, number>>): void {
  if (!process.env['LAB']) return;
  const line = Object.entries(values).map(([what, value]) => `${what} ${Math.round(value * 100) / 100}`);
  process.stderr.write(`${name}: ${line.join(', ')}\n`);
}
