import type { LockStore } from '../store/lock-store.js';
import type { OpenLeases } from './open-leases.js';
import type { StoreQueue } from './store-queue.js';
import type { Watchdog } from './watchdog.js';

/** Who hears what the store tells. */
interface Ears {
  /** What all tokens of this process begin with. */
  readonly source: string;
  readonly queue: StoreQueue;
  readonly open: OpenLeases;
  readonly watchdog: Watchdog;
  readonly doubt: () => void;
}

/** Passes on what the store tells, to those who ask it for a lock and to the leases. A message may overtake the answer that it belongs to. */
export function hearStore(store: LockStore, { source, queue, open, watchdog, doubt }: Ears): void {
  store.listen({
    source,
    granted: (token, grant) => queue.granted(token, grant) || open.get(token) !== undefined,
    called: (token) => queue.called(token) || open.get(token) !== undefined,
    wanted: (token) => {
      queue.wanted(token);
      open.get(token)?.run?.contend();
    },
    lost: (token, forced) => {
      queue.lost(token);
      const lease = open.get(token);
      // The message may be about what the token had before it asked again.
      if (lease?.isRegained) void watchdog.hasLost(lease).then((lost) => lost && lease.lose('taken', forced));
      else lease?.lose('taken', forced);
    },
    describe: (token) => open.get(token)?.describe(),
    doubt,
  });
}
