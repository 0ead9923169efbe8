import type { HeldRow, PageSnapshot } from '../../lib/page/page-snapshot.js';
import type { Route } from '../feed/route.js';

export interface ViewProps {
  readonly snapshot: PageSnapshot;
  readonly route: Route;
  /** Whether the reader has stopped the data: nothing is asked for. */
  readonly isPaused: boolean;
  /** Asks to take a lock away. Undefined where that is not allowed. */
  readonly onUnlock: ((holder: HeldRow) => void) | undefined;
}

/** What to show while the data is not about what the address asks for. */
export const lookingFor = (what: string, isPaused: boolean): string =>
  isPaused ? `Paused. Press “Pause” again to look for ${what}.` : `Looking for ${what}…`;
