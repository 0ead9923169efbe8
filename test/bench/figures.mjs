/** The value below which a part of the values lies: `percentile(values, 0.5)` is the median. */
export function percentile(values, part) {
  const sorted = Float64Array.from(values).sort();
  const at = (sorted.length - 1) * part;
  const below = sorted[Math.floor(at)];
  return below + (sorted[Math.ceil(at)] - below) * (at - Math.floor(at));
}

export const median = (values) => percentile(values, 0.5);

/** The median of one figure over the rounds that have it. */
export const medianOf = (rounds, figure) => median(rounds.map((round) => round[figure]));

/** A median with its spread: between p10 and p90 lie four of five rounds. */
export function spread(values) {
  return { p50: median(values), p10: percentile(values, 0.1), p90: percentile(values, 0.9) };
}

/** Jain's fairness index: 1 when all got the same, 1/n when one got everything. (Jain, Chiu, Hawe 1984) */
export function jain(shares) {
  const sum = shares.reduce((total, share) => total + share, 0);
  const squares = shares.reduce((total, share) => total + share * share, 0);
  return (sum * sum) / (shares.length * squares);
}

export const ratio = ({ p50, p10, p90 }) => `${short(p50)} (${short(p10)}–${short(p90)})`;

/** Three digits are more than these figures are good for. */
export function short(value) {
  if (!Number.isFinite(value)) return '–';
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en-US');
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2);
}
