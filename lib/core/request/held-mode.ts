import type { Sharing } from '../../store/lock-store.js';
import type { LockMode } from './lock-options.js';

/** Says how a lock is held: in its mode, or as a permit of a semaphore. */
export type HeldMode = LockMode | 'permit';

/** Says how a key is shared: one word for `'write'` and `'exclusive'`, which share it with nobody. */
export type SharedMode = Exclude<HeldMode, 'write'>;

export function modeOf(sharing: Sharing): SharedMode {
  return sharing === 'read' || sharing === 'exclusive' ? sharing : 'permit';
}
