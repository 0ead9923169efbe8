import type { Sharing } from './lock-store.js';

/** How many permits there are, of a semaphore. */
export function permitsOf(sharing: Sharing): number | undefined {
  return sharing.startsWith('permits:') ? Number(sharing.slice('permits:'.length)) : undefined;
}
