import type { ForceUnlockOptions, LockStore } from '../store/lock-store.js';

/**
 * Releases a key by force.
 *
 * @returns the tokens of the owners that it had, or the only one that it was to be released from; undefined when nobody
 *   held it, or not that token
 * @throws LockUnavailableError
 */
export async function forceUnlock(
  store: LockStore,
  key: string,
  options: ForceUnlockOptions,
): Promise<readonly string[] | undefined> {
  const { token } = options;
  // Sent just before the release, so it costs no further round trip.
  const owners = token === undefined ? ownersOf(store, key) : [token];
  return (await store.forceRelease(key, options)) ? owners : undefined;
}

/** Never rejects: what only the log tells must not keep an operator from a release. */
async function ownersOf(store: LockStore, key: string): Promise<readonly string[]> {
  try {
    const view = await store.inspect(key);
    return view?.holders.map(({ token }) => token) ?? [];
  } catch {
    return [];
  }
}
