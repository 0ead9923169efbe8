import type { ForcedUnlock, ForceUnlockOptions } from '../../store/lock-store.js';
import { HOLDERS_OF, isHolder } from '../lua/holders-of.script.js';
import { forcedText } from '../wake/wake-message.js';
import type { LockOperation } from './lock-operation.js';
import type { Transport } from './transport.js';

/**
 * Takes a key from its holders. It releases the tokens that it finds: a command that released whatever it met could,
 * sent twice, release the next holder's lock.
 *
 * @returns false when nobody held it, or not that token, or the holders had released it by then
 * @throws LockUnavailableError
 */
export async function forceRelease(
  transport: Transport,
  key: string,
  { token: only, ...forced }: ForceUnlockOptions = {},
): Promise<boolean> {
  const holders = await transport.redis.run(HOLDERS_OF, transport.names.ofKey(key), []);
  const tokens = holders.filter((token) => only === undefined || isHolder(token, only));
  const released = await Promise.all(tokens.map((token) => forceToken(transport, key, token, forced)));
  return released.includes(true);
}

/** Takes a key from one holder. If that was sent twice, the first copy may have done so. */
function forceToken({ batch, redis }: Transport, key: string, token: string, forced: ForcedUnlock): Promise<boolean> {
  const { epoch } = redis;
  return new Promise((resolve, reject) => {
    const operation: LockOperation = {
      verb: 'force',
      lock: { keys: [key], token, leaseMs: 0 },
      kind: forcedText(forced),
      done: (freed) => resolve(freed === 1 || epoch !== redis.epoch || operation.resent === true),
      failed: reject,
    };
    batch.add(operation);
  });
}
