import { durationMs } from '../clock/duration.js';
import { booleanOption, wrongValue } from '../core/request/lock-options.js';
import { LockOptionsError } from '../errors/lock-options.error.js';
import { plainOptions } from '../errors/plain-options.js';
import { unknownOption } from '../errors/unknown-option.js';
import type { RedisLockOptions } from './redis-lock.options.js';
import type { DurabilityTerms } from '../redis/durability/replica-acknowledgements.js';
import type { LockStore } from '../store/lock-store.js';

/**
 * Checks the option `durability`.
 *
 * @throws LockOptionsError that names the option, the value and what is allowed
 */
export function resolveDurability(
  given: NonNullable<RedisLockOptions['durability']>,
  store: LockStore | undefined,
  commandTimeoutMs: number,
): DurabilityTerms | undefined {
  if (given === 'none') return undefined;
  if (store !== undefined)
    throw new LockOptionsError(
      '"durability" is about replicas of Redis: a custom "store" has to take care of it itself.',
    );
  if (typeof given !== 'object' || given === null)
    throw wrongValue('durability', given, '"none" or { replicas, timeout, aof }');
  const durability = plainOptions(given, []);
  const unknown = Object.keys(durability).find((name) => !['replicas', 'timeout', 'aof'].includes(name));
  if (unknown)
    throw unknownOption(`durability.${unknown}`, ['durability.replicas', 'durability.timeout', 'durability.aof']);
  const { replicas, timeout = commandTimeoutMs / 2 } = durability;
  const aof = booleanOption('durability.aof', durability.aof === undefined ? false : durability.aof);
  const least = aof ? 0 : 1;
  if (!Number.isSafeInteger(replicas) || replicas < least)
    throw wrongValue('durability.replicas', replicas, `a whole number of at least ${least}`);
  const timeoutMs = durationMs('durability.timeout', timeout, { min: 1 });
  if (timeoutMs >= commandTimeoutMs)
    throw wrongValue('durability.timeout', timeout, `shorter than "commandTimeout" (${commandTimeoutMs} ms)`);
  return Object.freeze({ replicas, timeoutMs, aof });
}
