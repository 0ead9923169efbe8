const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Writes a time that ticks: `0 s`, `42 s`, `3 min 12 s`, `2 h 05 min`, `3 d 4 h`. */
export function age(ms: number): string {
  const whole = Math.max(0, ms);
  if (whole < MINUTE) return `${Math.floor(whole / SECOND)} s`;
  if (whole < HOUR) return `${Math.floor(whole / MINUTE)} min ${twoDigits(((whole % HOUR) % MINUTE) / SECOND)} s`;
  if (whole < DAY) return `${Math.floor(whole / HOUR)} h ${twoDigits((whole % HOUR) / MINUTE)} min`;
  return `${Math.floor(whole / DAY)} d ${Math.floor((whole % DAY) / HOUR)} h`;
}

/** Writes a measured duration with about three digits: `0.42 ms`, `12.3 ms`, `1.25 s`, `2.1 min`. */
export function duration(ms: number): string {
  if (ms < SECOND) return `${threeDigits(ms)} ms`;
  if (ms < 2 * MINUTE) return `${threeDigits(ms / SECOND)} s`;
  if (ms < 2 * HOUR) return `${threeDigits(ms / MINUTE)} min`;
  return `${threeDigits(ms / HOUR)} h`;
}

const NUMBER = new Intl.NumberFormat('en');

/** Writes the time of day: `03:12:44`. */
export function timeOfDay(at: number, parts: 'with seconds' | 'without seconds' = 'with seconds'): string {
  const style = parts === 'with seconds' ? 'medium' : 'short';
  return new Date(at).toLocaleTimeString('en', { timeStyle: style, hourCycle: 'h23' });
}

/** Writes a whole number with separators: `12,345`. */
export function count(value: number): string {
  return NUMBER.format(Math.round(value));
}

/** Says how many there are of a thing: `1 caller`, `3 callers`, `no callers`. */
export function many(value: number, one: string, several = `${one}s`): string {
  return `${value === 0 ? 'no' : count(value)} ${value === 1 ? one : several}`;
}

function twoDigits(value: number): string {
  return String(Math.floor(value)).padStart(2, '0');
}

function threeDigits(value: number): string {
  if (value === 0) return '0';
  return value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : value.toFixed(0);
}
