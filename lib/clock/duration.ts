import ms from 'ms';
import { LockOptionsError } from '../errors/lock-options.error.js';
import { shown } from '../errors/messages.js';
import { LONGEST_TIMER_MS } from './deadline.js';

type Unit =
  | 'ms' | 'msec' | 'msecs' | 'millisecond' | 'milliseconds'
  | 's' | 'sec' | 'secs' | 'second' | 'seconds'
  | 'm' | 'min' | 'mins' | 'minute' | 'minutes'
  | 'h' | 'hr' | 'hrs' | 'hour' | 'hours'
  | 'd' | 'day' | 'days' | 'w' | 'week' | 'weeks' | 'y' | 'yr' | 'yrs' | 'year' | 'years'; // prettier-ignore

type AnyCase = Unit | Uppercase<Unit> | Capitalize<Unit>;

/**
 * A number of milliseconds, or a string of the `ms` package such as `'250ms'`, `'30s'`, `'5 minutes'`. Cast a string
 * from the configuration with `as Duration`: its value is checked at boot.
 */
export type Duration = number | `${number}` | `${number}${AnyCase}` | `${number} ${AnyCase}`;

/**
 * Longest duration that is not `Infinity`, in ms: about 30 years. Redis counts no further than some powers of ten
 * beyond it.
 */
const LONGEST_MS = 1e12;

interface Bounds {
  readonly min: number;
  /** Whether timers take it as it is, the client's own included. Node ends a timer at once whose delay is longer. */
  readonly ofTimer?: boolean;
  /** Whether `Infinity` is allowed. */
  readonly unlimited?: boolean;
}

/**
 * Reads a duration into whole milliseconds.
 *
 * @throws LockOptionsError naming the option, the value and what is allowed
 */
export function durationMs(option: string, value: Duration, { min, ofTimer, unlimited = false }: Bounds): number {
  const [longestMs, longest] = ofTimer ? [LONGEST_TIMER_MS, '24 days'] : [LONGEST_MS, '30 years'];
  const parsed = typeof value === 'string' && value.length > 0 && value.length <= 100 ? ms(value) : value;
  const usable =
    typeof parsed === 'number' && parsed >= min && (parsed <= longestMs || (parsed === Infinity && unlimited));
  if (usable) return Math.round(parsed);
  const most = typeof parsed === 'number' && parsed > longestMs ? ` and at most ${longest}` : '';
  throw new LockOptionsError(
    `"${option}" is ${shown(value)}, but must be a duration of at least ${min} ms${most}: ` +
      `a number of milliseconds or a string such as "250ms", "30s", "2m"${unlimited ? ', or Infinity' : ''}.`,
  );
}
