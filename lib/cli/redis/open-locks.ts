import { quoted, shown } from '../../errors/messages.js';
import { redisOutageLog } from '../../module/redis-lock.outage-log.js';
import type { RedisLockOptions } from '../../module/redis-lock.options.js';
import { resolveModuleOptions } from '../../module/redis-lock.resolved-options.js';
import { redisStore } from '../../redis/redis-store.js';
import { LockService } from '../../service/lock.service.js';
import { OutageReporter } from '../../service/outage-reporter.js';
import { timerAt, now } from '../../clock/deadline.js';
import { durationMs, type Duration } from '../../clock/duration.js';
import type { Arguments } from '../arguments/arguments.js';
import { UsageError } from '../arguments/usage.error.js';
import type { Say } from '../say.js';
import { redisPlace } from './redis-place.js';

/** Locks without a Nest app. */
export interface OpenLocks {
  readonly locks: LockService;
  /** Whether Redis is a quorum, which knows no waiters. */
  readonly isQuorum: boolean;
  /** How long a command to Redis takes at most, in ms. */
  readonly commandTimeoutMs: number;
  /** Gives back what is still held, and closes the connections. Settles within the command time-out. */
  readonly close: () => Promise<void>;
}

/**
 * Makes the `LockService` of a command line, without a Nest app.
 *
 * @param logs `warn` gets what makes a server unfit to keep locks; `log` the lines about outages, which are errors of
 *   calls, too
 * @throws UsageError, LockOptionsError
 */
export function openLocks(
  given: Arguments,
  { warn, log = () => undefined }: { readonly warn: Say; readonly log?: Say },
  options: Pick<RedisLockOptions, 'lease'> = {},
): OpenLocks {
  const place = redisPlace(given);
  const [keyPrefix, commandTimeout] = [given.text('prefix'), duration(given, 'timeout', 10)];
  const { callDefaults, ...resolved } = resolveModuleOptions({
    connection: place.connection,
    ...(keyPrefix === undefined ? {} : { keyPrefix }),
    ...(commandTimeout === undefined ? {} : { commandTimeout }),
    ...options,
  });
  const outage = new OutageReporter({ log, warn: log });
  const nodes = Array.isArray(place.connection) ? place.connection.length : 1;
  const outageLog = redisOutageLog({ log, warn: log, error: log, debug: log }, outage, nodes);
  const locks = new LockService({
    name: 'command',
    callDefaults,
    shutdownGraceMs: 0,
    outage,
    store: redisStore({
      ...resolved,
      leaseMs: callDefaults.leaseMs,
      log: {
        ...outageLog,
        unfit: (server, problem) => warn(`Redis at ${server} should not keep locks: ${problem}`),
      },
    }),
  });
  return {
    locks,
    isQuorum: nodes > 1,
    commandTimeoutMs: resolved.commandTimeoutMs,
    close: async () => {
      await inTime(locks.onApplicationShutdown(), resolved.commandTimeoutMs);
      place.close();
    },
  };
}

/**
 * Reads an option that is a duration, in ms. It must have a unit: other commands take a number for seconds.
 *
 * @throws LockOptionsError naming the option, the value and what is allowed
 * @throws UsageError when it has no unit
 */
export function duration(given: Arguments, option: string, min: number): number | undefined {
  const text = given.text(option);
  if (text !== undefined && /^\s*[\d.]+\s*$/.test(text) && Number(text) > 0)
    throw new UsageError(
      `--${option} is ${quoted(text)}, without a unit: say "${text.trim()}s" or "${text.trim()}ms".`,
    );
  return text === undefined ? undefined : durationMs(`--${option}`, text as Duration, { min });
}

/**
 * Reads an option that is a number.
 *
 * @throws UsageError unless it is a whole number from `min` to `max`
 */
export function number(given: Arguments, option: string, min: number, max: number): number | undefined {
  const text = given.text(option);
  if (text === undefined) return undefined;
  if (/^\d+$/.test(text) && Number(text) >= min && Number(text) <= max) return Number(text);
  throw new UsageError(`--${option} is ${shown(text)}, but must be a whole number from ${min} to ${max}.`);
}

/** Waits for something, but no longer than this. */
export async function inTime(work: Promise<unknown>, timeoutMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([work, new Promise<void>((resolve) => (timer = timerAt(now() + timeoutMs, resolve)))]);
  clearTimeout(timer);
}
