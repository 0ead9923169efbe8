import type { Lease } from '../lease/lease.js';
import type { LockRequest } from '../request/lock-request.js';
import { Lock, type LockIssuer } from './lock.js';

/** Creates the lock of a caller that now holds a lease. */
export function createLock(lease: Lease, request: LockRequest, fence: number, issuer: LockIssuer): Lock {
  const lock = new Lock({ keys: lease.keys, fence, leases: [lease], issuer, request });
  lease.setHolder(lock, request);
  return lock;
}
