/** Names keys in an error message: `lock "account:42"`, `locks "account:1", "account:2"`. */
export function namesOf(keys: readonly string[]): string {
  return `${keys.length === 1 ? 'lock' : 'locks'} ${keys.map((key) => JSON.stringify(key)).join(', ')}`;
}
