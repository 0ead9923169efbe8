import type { PageSnapshot } from '../../lib/page/page-snapshot.js';

/**
 * How the data arrives: `live` by server-sent events, `polling` where these do not get through. `away`: the app does not
 * answer. `refused`: it answers, but with no data. `paused`: the reader wants to look at it in peace.
 */
export type FeedStatus = 'connecting' | 'live' | 'polling' | 'away' | 'refused' | 'paused';

export interface FeedState {
  readonly status: FeedStatus;
  /** The latest data; it stays when the app is away. */
  readonly snapshot: PageSnapshot | undefined;
  /** When the latest data arrived, by `performance.now()`. */
  readonly receivedAt: number;
  /** What the app said when it refused. */
  readonly refusal: string;
}
