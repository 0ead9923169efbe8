import type { HeldRow, PageSnapshot } from '../../lib/page/page-snapshot.js';
import type { Route } from '../feed/route.js';

export interface ViewProps {
  readonly snapshot: PageSnapshot;
  readonly route: Route;
  /** Asks to take a lock away. Undefined where that is not allowed. */
  readonly onUnlock: ((holder: HeldRow) => void) | undefined;
}
