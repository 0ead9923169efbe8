import type { LockStore, ProcessQuestion } from '../../store/lock-store.js';
import type { LeaseRegistry } from '../lease/lease-registry.js';
import type { Watchdog } from '../lease/watchdog.js';
import type { PendingAcquires } from './pending-acquires.js';

/** What gets the messages of the store. */
interface StoreListenerParts {
  /** What all tokens of this process begin with. */
  readonly source: string;
  readonly pendingAcquires: PendingAcquires;
  readonly leases: LeaseRegistry;
  readonly watchdog: Watchdog;
  /** Replies to the questions of other processes. */
  readonly answer: (question: ProcessQuestion) => unknown;
  /** Called when messages or locks may have been lost. */
  readonly resync: () => void;
}

/**
 * Passes the messages of the store on to pending acquires and to leases. A message may overtake the reply that it
 * belongs to.
 */
export function listenToStore(store: LockStore, parts: StoreListenerParts): void {
  const { source, pendingAcquires, leases, watchdog, answer, resync } = parts;
  store.listen({
    source,
    granted: (token, grant) => pendingAcquires.granted(token, grant) || leases.get(token) !== undefined,
    offered: (token) => pendingAcquires.offered(token) || leases.get(token) !== undefined,
    contended: (token) => {
      pendingAcquires.markContended(token);
      leases.get(token)?.handOffRun?.markContended();
    },
    forceReleased: (token, forced) => {
      pendingAcquires.markForcedAway(token);
      const lease = leases.get(token);
      // The message may be about a lock that the token had before it asked again.
      if (lease?.isReacquired) void watchdog.mayBeGone(lease).then((gone) => gone && lease.lose('taken', forced));
      else lease?.lose('taken', forced);
    },
    describe: (token) => leases.get(token)?.exposeDetails(),
    answer,
    resync,
  });
}
