import { quoted } from './messages.js';

/** How many keys a message names, at most. */
const MOST = 5;

/** Names keys, and whom they are for, in the detail of an error: `lock "account:42"`, `locks "account:1", "account:2" for "Bank.transfer"`. */
export function namesOf(keys: readonly string[], label?: string): string {
  const named = keys.slice(0, MOST).map(quoted).join(', ');
  const more = keys.length > MOST ? ` and ${keys.length - MOST} more` : '';
  return `${keys.length === 1 ? 'lock' : 'locks'} ${named}${more}${label === undefined ? '' : ` for ${quoted(label)}`}`;
}
