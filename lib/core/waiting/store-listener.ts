import type { LockStore } from '../../store/lock-store.js';
import type { LeaseRegistry } from '../lease/lease-registry.js';
import type { PendingAcquires } from './pending-acquires.js';
import type { Watchdog } from '../lease/watchdog.js';

/** Who hears what the store tells. */
interface Ears {
  /** What all tokens of this process begin with. */
  readonly source: string;
  readonly queue: PendingAcquires;
  readonly open: LeaseRegistry;
  readonly watchdog: Watchdog;
  readonly resync: () => void;
}

/** Passes on what the store tells, to those who ask it for a lock and to the leases. A message may overtake the answer that it belongs to. */
export function listenToStore(store: LockStore, { source, queue, open, watchdog, resync }: Ears): void {
  store.listen({
    source,
    granted: (token, grant) => queue.granted(token, grant) || open.get(token) !== undefined,
    offered: (token) => queue.offered(token) || open.get(token) !== undefined,
    contended: (token) => {
      queue.markContended(token);
      open.get(token)?.handOffRun?.markContended();
    },
    lost: (token, forced) => {
      queue.lost(token);
      const lease = open.get(token);
      // The message may be about what the token had before it asked again.
      if (lease?.isRegained) void watchdog.hasLost(lease).then((lost) => lost && lease.lose('taken', forced));
      else lease?.lose('taken', forced);
    },
    describe: (token) => open.get(token)?.describe(),
    resync,
  });
}
