import { LockOptionsError } from '../../errors/lock-options.error.js';
import { unknownOption } from '../../errors/unknown-option.js';
import { shown } from '../../errors/messages.js';
import { durationMs, type Duration } from '../../clock/duration.js';
import { callSiteOf, type CallSite } from './call-site.js';
import { isWellFormed } from './lock-key.js';
import { plainOptions } from '../../errors/plain-options.js';
import type { Sharing } from '../../store/lock-store.js';

/** How a key is asked for. */
export type LockMode = 'exclusive' | 'read' | 'write';

/** Options of one call. What it leaves out comes from the module. */
export interface LockOptions {
  /**
   * How long to wait for the key. `0`: one try.
   * @default the module's `wait` (`'10s'`); `0` for `tryLock`
   */
  readonly wait?: Duration | undefined;
  /**
   * How long Redis keeps the lock if this process dies. The watchdog renews it while the work runs, so it need not
   * cover the whole run. A longer lease only means a longer wait for other callers after a crash.
   * @default the module's `lease` (`'30s'`); smallest `'100ms'`
   */
  readonly lease?: Duration | undefined;
  /**
   * Whether to renew the lease every lease/3 while the lock is held. `false`: the lock ends with its lease, and its
   * signal aborts then.
   * @default the module's `watchdog` (`true`)
   */
  readonly watchdog?: boolean | undefined;
  /**
   * How long the watchdog renews the lock at most, so that a stuck method can't hold a key for ever.
   * @default no limit
   */
  readonly maxHold?: Duration | undefined;
  /**
   * Reports the lock when it has been held for longer than this: a warning in the log, and an `overdue` event, once. A
   * nested call is reported only if its time is over before that of the call that it is nested in. `Infinity`: never.
   * @default the module's `warnAfter` (none)
   */
  readonly warnAfter?: Duration | undefined;
  /**
   * How long the key stays locked at least after the grant, even if the work is done sooner: for jobs that must run
   * once, on hosts whose clocks differ a little. After a crash, or when the lock is lost, the key is free when the
   * lease ends. So choose it shorter than `maxHold`, and, without a watchdog, shorter than `lease`.
   * @default 0
   */
  readonly atLeast?: Duration | undefined;
  /**
   * `'read'` shares the key with all other readers; `'write'` and `'exclusive'` share it with nobody. First come, first
   * served: readers that come after a waiting writer wait for it.
   * @default 'exclusive'
   */
  readonly mode?: LockMode | undefined;
  /**
   * Makes a semaphore: up to this many hold the key at once. All callers of a key must name the same number.
   * @default none
   */
  readonly permits?: number | undefined;
  /**
   * What errors, events and `inspect` call this caller: the name of a job, of a tenant. At most 100 characters.
   * @default `Class.method` for `@WithLock`; otherwise none
   */
  readonly label?: string | undefined;
  /** Waiters allowed for a key in this process; one more is refused at once. @default no limit */
  readonly maxWaiters?: number | undefined;
  /**
   * `true`: strictly first come, first served over all callers of all processes. `false`: strict between processes,
   * with short runs of hand-offs inside one process, which costs far fewer commands.
   * @default false
   */
  readonly fair?: boolean | undefined;
  /**
   * `true`: a call nested in a holder's async context enters at once. `false`: it throws instead of waiting for itself.
   * @default the module's `reentrant` (`true`)
   */
  readonly reentrant?: boolean | undefined;
  /** Aborts the wait: the call rejects with `signal.reason` and nothing is left behind in Redis. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of `withLock` and `@WithLock`. */
export interface WithLockOptions extends LockOptions {
  /**
   * `'throw'`: reject with `LockLostError` when the lock was lost while the work ran. `'ignore'`: return the work's own
   * result.
   * @default 'throw'
   */
  readonly onLost?: 'throw' | 'ignore' | undefined;
}

/** The options of one call, read and checked, with nothing left open. */
export interface ResolvedLockOptions {
  readonly waitMs: number;
  readonly leaseMs: number;
  readonly watchdog: boolean;
  readonly maxHoldMs: number;
  readonly warnAfterMs: number | undefined;
  readonly atLeastMs: number;
  readonly mode: LockMode;
  readonly permits: number | undefined;
  /** Says the same as `mode` and `permits`, for stores. */
  readonly sharing: Sharing;
  readonly label: string | undefined;
  readonly site: CallSite | undefined;
  readonly maxWaiters: number;
  readonly fair: boolean;
  readonly reentrant: boolean;
  readonly onLost: 'throw' | 'ignore';
  readonly signal: AbortSignal | undefined;
}

/** Smallest lease, in ms: below it the network's own delays would decide who holds the lock. */
export const SMALLEST_LEASE_MS = 100;

/** Longest label, in characters. */
export const LONGEST_LABEL = 100;

const MOST_PERMITS = 1_000_000;

export const DEFAULT_LOCK_OPTIONS: ResolvedLockOptions = Object.freeze({
  waitMs: 10_000,
  leaseMs: 30_000,
  watchdog: true,
  maxHoldMs: Infinity,
  warnAfterMs: undefined,
  atLeastMs: 0,
  mode: 'exclusive',
  permits: undefined,
  sharing: 'exclusive',
  label: undefined,
  site: undefined,
  maxWaiters: Infinity,
  fair: false,
  reentrant: true,
  onLost: 'throw',
  signal: undefined,
});

/** Resolves each option of a call. This is the only list of the options. */
const READERS: { readonly [name in keyof WithLockOptions]-?: (value: never) => Partial<ResolvedLockOptions> } = {
  wait: (value: Duration) => ({ waitMs: durationMs('wait', value, { min: 0, unlimited: true }) }),
  lease: (value: Duration) => ({ leaseMs: durationMs('lease', value, { min: SMALLEST_LEASE_MS }) }),
  watchdog: (value: unknown) => ({ watchdog: booleanOption('watchdog', value) }),
  maxHold: (value: Duration) => ({ maxHoldMs: durationMs('maxHold', value, { min: 1, unlimited: true }) }),
  warnAfter: (value: Duration) => ({ warnAfterMs: warnAfterOption(value) }),
  atLeast: (value: Duration) => ({ atLeastMs: durationMs('atLeast', value, { min: 0 }) }),
  mode: (value: unknown) => ({ mode: oneOf('mode', value, ['exclusive', 'read', 'write'] as const) }),
  permits: (value: unknown) => ({ permits: permitsOption(value) }),
  label: (value: unknown) => ({ label: labelOption(value) }),
  maxWaiters: (value: unknown) => ({ maxWaiters: countOption('maxWaiters', value) }),
  fair: (value: unknown) => ({ fair: booleanOption('fair', value) }),
  reentrant: (value: unknown) => ({ reentrant: booleanOption('reentrant', value) }),
  signal: (value: unknown) => ({ signal: signalOption(value) }),
  onLost: (value: unknown) => ({ onLost: oneOf('onLost', value, ['throw', 'ignore'] as const) }),
};

/** The names of all options of a call. */
export const LOCK_OPTIONS: readonly string[] = Object.keys(READERS);

/**
 * Resolves the options of a call, over the defaults for those it leaves out.
 *
 * @param besides names of further options, which the caller reads itself
 *
 * @throws LockOptionsError for an unknown option or a bad value
 */
export function resolveCallOptions(
  given: WithLockOptions | undefined,
  defaults: ResolvedLockOptions,
  besides: readonly string[] = [],
): ResolvedLockOptions {
  if (given === undefined) return defaults;
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new LockOptionsError(`Lock options must be an object, not ${shown(given)}.`);
  }
  const options = plainOptions(given, LOCK_OPTIONS);
  const resolved = copyOptions(defaults);
  for (const [name, value] of Object.entries(options)) {
    const reader = Object.hasOwn(READERS, name) ? READERS[name as keyof WithLockOptions] : undefined;
    if (!reader) throw unknownOption(name, [...LOCK_OPTIONS, ...besides]);
    if (value === undefined) continue;
    Object.assign(resolved, reader(value as never));
  }
  resolved.sharing = sharingOf(resolved);
  resolved.site = callSiteOf(given);
  return resolved;
}

/** Returns options with another `wait`. Those of a class keep what its prototype has. */
export function withWait<Options extends LockOptions>(options: Options | undefined, wait: Duration): Options {
  return { ...(options && plainOptions(options, LOCK_OPTIONS)), wait } as Options;
}

/** What its maker fills in. */
export type Writable<T> = { -readonly [name in keyof T]: T[name] };

/** Copies options property by property: V8 takes microseconds to spread an object of this size. */
export function copyOptions(options: ResolvedLockOptions): Writable<ResolvedLockOptions> {
  return {
    waitMs: options.waitMs,
    leaseMs: options.leaseMs,
    watchdog: options.watchdog,
    maxHoldMs: options.maxHoldMs,
    warnAfterMs: options.warnAfterMs,
    atLeastMs: options.atLeastMs,
    mode: options.mode,
    permits: options.permits,
    sharing: options.sharing,
    label: options.label,
    site: options.site,
    maxWaiters: options.maxWaiters,
    fair: options.fair,
    reentrant: options.reentrant,
    onLost: options.onLost,
    signal: options.signal,
  };
}

function sharingOf({ mode, permits }: ResolvedLockOptions): Sharing {
  if (permits === undefined) return mode === 'read' ? 'read' : 'exclusive';
  if (mode === 'exclusive') return `permits:${permits}`;
  throw new LockOptionsError(
    `A lock has either "permits" or the mode "${mode}", not both: a semaphore has no readers and writers.`,
  );
}

export function booleanOption(option: string, value: unknown): boolean {
  if (typeof value === 'boolean') return value;
  throw wrongValue(option, value, 'true or false');
}

export function oneOf<const T extends string>(option: string, value: unknown, allowed: readonly T[]): T {
  if (allowed.includes(value as T)) return value as T;
  throw wrongValue(option, value, allowed.map((one) => JSON.stringify(one)).join(' or '));
}

export function wrongValue(option: string, value: unknown, allowed: string): LockOptionsError {
  return new LockOptionsError(`"${option}" is ${shown(value)}, but must be ${allowed}.`);
}

function countOption(option: string, value: unknown): number {
  if (value === Infinity || (Number.isInteger(value) && (value as number) >= 0)) return value as number;
  throw wrongValue(option, value, 'a whole number of at least 0');
}

function permitsOption(value: unknown): number {
  if (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MOST_PERMITS) return value as number;
  throw wrongValue('permits', value, `a whole number from 1 to ${MOST_PERMITS}`);
}

function labelOption(value: unknown): string {
  if (typeof value === 'string' && value.length > 0 && value.length <= LONGEST_LABEL && isWellFormed(value))
    return value;
  throw wrongValue('label', value, `a text of 1 to ${LONGEST_LABEL} characters`);
}

function warnAfterOption(value: Duration): number | undefined {
  const warnAfterMs = durationMs('warnAfter', value, { min: 1, unlimited: true });
  return warnAfterMs === Infinity ? undefined : warnAfterMs;
}

function signalOption(value: unknown): AbortSignal {
  if (value instanceof AbortSignal) return value;
  throw wrongValue('signal', value, 'an AbortSignal');
}
