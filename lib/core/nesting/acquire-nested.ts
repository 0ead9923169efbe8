import { now } from '../../clock/deadline.js';
import { LockOptionsError } from '../../errors/lock-options.error.js';
import { lockNames } from '../../errors/messages.js';
import type { Sharing } from '../../store/lock-store.js';
import { enterKeys, leaveKeys, type GateOf } from '../waiting/enter-keys.js';
import type { Lease } from '../lease/lease.js';
import { changedRequest, type LockRequest, type Refusal } from '../request/lock-request.js';
import { Lock, type LockIssuer } from '../lock/lock.js';
import type { DeadlockDetector } from './deadlock-detector.js';

interface Outside {
  /** `host:pid` of this process, to name who has the key. */
  readonly holder: string;
  readonly giver: LockIssuer;
  readonly waiting: DeadlockDetector;
}

/**
 * Takes keys that outer calls hold already: asks the store nothing, and waits only for siblings that are nested in the same
 * call. Only a reader that is to write asks the store whether it is alone.
 *
 * @param outers for each key the innermost lock that holds it
 * @returns `'outlived'` when an outer call ended meanwhile
 * @throws LockOptionsError when an outer lock does not allow what is asked for
 * @throws LockUnavailableError, or the reason of a signal that aborts the wait
 */
export async function acquireNested(
  outers: ReadonlyMap<string, Lock>,
  request: LockRequest,
  outside: Outside,
): Promise<Lock | Refusal | 'outlived'> {
  request.signal?.throwIfAborted();
  const { keys, sharing } = request;
  const doorOf = (key: string): Lock => outers.get(key)!.queueOwner(key);
  const gateOf: GateOf = (key) => doorOf(key).inner;
  for (const key of keys) checkSharing(doorOf(key).sharing(key), request);

  const isShared = (key: string): boolean => sharing === 'read' && doorOf(key).sharing(key) === 'read';
  let alone: readonly string[];
  const around = [...new Set(outers.values())];
  const isOutlived = (): boolean => !around.every((outer) => outer.isHeld);
  const until = now() + request.waitMs;
  for (;;) {
    // Each time: a writer outside may have become a reader meanwhile.
    alone = keys.filter((key) => !isShared(key));
    // What siblings write that is only to be read here is waited for one by one, and holding nothing: they may wait for us.
    const busy = keys.find((key) => isShared(key) && gateOf(key).isTaken(key));
    const entering = busy === undefined ? alone : [busy];
    if (entering.length === 0) break;
    const startedAt = now();
    const waitMs = Math.max(0, until - startedAt);
    const entry = changedRequest(request, { keys: entering, isPassing: busy !== undefined, waitMs });
    const passage = await enterKeys(gateOf, entry, { ...outside, startedAt });
    if (passage !== 'turn') return passage;
    if (isOutlived()) {
      leaveKeys(gateOf, entering);
      return 'outlived';
    }
    if (busy === undefined && !alone.some(isShared) && !keys.some((key) => isShared(key) && gateOf(key).isTaken(key)))
      break;
    leaveKeys(gateOf, entering);
  }
  for (const key of alone) gateOf(key).setFront(key, 'inside');

  const { changes } = outside.giver;
  const written: Lease[] = [];
  const stop = (): void => {
    for (const lease of written) changes.endWriting(lease);
    leaveKeys(gateOf, alone);
  };
  let fence = Math.max(...around.map(({ fence }) => fence));
  try {
    for (const door of new Set(alone.filter((key) => doorOf(key).sharing(key) === 'read').map(doorOf))) {
      const [lease] = door.leases as [Lease];
      const grant = isAlone(door, around) ? await changes.startWriting(lease) : undefined;
      if (grant) written.push(lease);
      if (isOutlived()) {
        stop();
        return 'outlived';
      }
      if (!grant) throw notAlone(door);
      fence = Math.max(fence, grant.fence);
    }
  } catch (error) {
    stop();
    throw error;
  }

  const doors = new Set(keys.filter(isShared).map(doorOf));
  const leases = [...new Set(around.flatMap((outer) => outer.leases))];
  for (const lease of leases) lease.keepFor(request.atLeastMs);
  const leave = (): void => {
    for (const door of doors) door.readers.delete(lock);
    stop();
  };
  const lock: Lock = new Lock({
    keys,
    fence,
    leases,
    giver: outside.giver,
    request,
    nesting: { parents: around, isShared, leave },
  });
  for (const door of doors) door.readers.add(lock);
  return lock;
}

/** @throws LockOptionsError */
function checkSharing(outer: Sharing, { keys, sharing }: LockRequest): void {
  if (outer === 'exclusive' || outer === sharing || (outer === 'read' && sharing === 'exclusive')) return;
  const text = (locks: string): string =>
    `This call asks for ${locks} as ${named(sharing)}, inside a call that has it as ${named(outer)}, and would wait for itself. ` +
    'Ask for the same inside, or for more outside.';
  throw new LockOptionsError(text('a lock'), text(lockNames(keys)));
}

const named = (sharing: Sharing): string =>
  sharing === 'read' ? 'a reader' : sharing === 'exclusive' ? 'the only holder' : `one of ${sharing.replace(':', ' ')}`;

/** Whether nobody reads at this door but those whom the caller is nested in. */
function isAlone(door: Lock, around: readonly Lock[]): boolean {
  return [...door.readers].every((reader) => around.some((outer) => outer.isWithin(reader)));
}

function notAlone(door: Lock): LockOptionsError {
  const text = (locks: string): string =>
    `This call asks to write under ${locks}, inside a call that reads, while others read too: two such calls would wait for each other. ` +
    'Take the lock for writing in the outer call; "lock.downgrade()" lets other readers in when the writing is done.';
  return new LockOptionsError(text('a lock'), text(lockNames(door.keys)));
}
