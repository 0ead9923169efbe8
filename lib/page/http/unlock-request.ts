import { BadRequestException } from '@nestjs/common';
import type { UnlockRequest } from '../page-snapshot.js';
import { fieldsOf } from '../../core/list/fields.js';

const LONGEST_REASON = 200;

/**
 * Reads the body of a request to unlock a key.
 *
 * @throws BadRequestException that says what is wrong with it
 */
export function unlockRequestIn(body: unknown): UnlockRequest {
  const { key, typedKey, fence, tokenHash, reason } = fieldsOf(body);
  if (typeof key !== 'string' || key === '')
    throw new BadRequestException('"key" is missing. If you have sent one, the app does not parse JSON bodies.');
  if (typedKey !== key) throw new BadRequestException('"typedKey" is not the key: type it exactly.');
  if (fence !== null && !Number.isSafeInteger(fence))
    throw new BadRequestException('"fence" must be that of the holder, or null if it shows none.');
  if (fence === null && typeof tokenHash !== 'string')
    throw new BadRequestException('"tokenHash" must be that of the holder, if it shows no fence. Reload the page.');
  if (typeof reason !== 'string' || reason.trim() === '' || reason.length > LONGEST_REASON)
    throw new BadRequestException(`"reason" must be a text of 1 to ${LONGEST_REASON} characters.`);
  const shown = { fence: fence as number | null, tokenHash: fence === null ? (tokenHash as string) : null };
  return { key, typedKey, ...shown, reason: reason.trim() };
}

/** Says who unlocks: what the guard of the app has set as the user of the request. */
export function userOf(user: unknown): string {
  const { email, username, name, id, sub } = fieldsOf(user);
  const known = [email, username, name, id, sub].find((one) => typeof one === 'string' || typeof one === 'number');
  return (known === undefined ? 'somebody' : String(known)).slice(0, 150) || 'somebody';
}
