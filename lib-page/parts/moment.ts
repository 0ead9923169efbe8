import { createContext } from 'preact';
import { useContext } from 'preact/hooks';

/**
 * How old the shown data is, in ms: ages tick on between two snapshots, but not when the data is stale, so that nothing
 * counts what nobody knows.
 */
export const Moment = createContext(0);

/** Counts an age of the snapshot on to this moment. */
export function useElapsed(): number {
  return useContext(Moment);
}
