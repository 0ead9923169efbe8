import { appendFileSync } from 'node:fs';

/** `LAB=long` runs the same tests at their full size. */
export const LONG = process.env['LAB'] === 'long';

/** How much of something: in `npm test`, and in the long form. */
export const sized = (short: number, long: number): number => (LONG ? long : short);

/** The smallest value that this share of them does not exceed. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)]!;
}

/** Figures of a run, for the long form's reader; of a scenario that is judged by them, with what must hold. */
export function figures(name: string, ...what: readonly [Values] | readonly [promise: string, Values]): void {
  if (!process.env['LAB']) return;
  const [promise, values] = what.length === 1 ? ['', what[0]] : what;
  const measured = Object.entries(values).filter(([, value]) => Number.isFinite(value));
  const line = measured.map(([what, value]) => `${what} ${Math.round(value * 100) / 100}`).join(', ');
  process.stderr.write(`${name}: ${line}\n`);
  const file = process.env['LAB_FIGURES'];
  if (file) appendFileSync(file, `${JSON.stringify({ name, promise, line })}\n`);
}

type Values = Readonly<Record<string, number>>;
