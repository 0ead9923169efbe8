import type { RedisConnectionOption } from './redis-client.js';
import type { OutageLog } from './redis-connection.js';

/** What a `RedisLockStore` is told. */
export interface RedisLockStoreOptions {
  readonly connection: RedisConnectionOption;
  readonly keyPrefix: string;
  readonly commandTimeoutMs: number;
  readonly log: OutageLog;
  /** Whether it is one of the nodes of a quorum. */
  readonly isNode?: boolean;
  /** Whether renewals go over a connection of their own. */
  readonly renewsApart?: boolean;
}
