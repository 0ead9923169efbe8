import { now } from '../clock/deadline.js';
import { LockOptionsError } from '../errors/lock-options.error.js';
import { namesOf } from '../errors/names-of.js';
import type { Granted, Sharing } from '../store/lock-store.js';
import { enterKeys, leaveKeys, type GateOf } from './enter-keys.js';
import type { LockRequest, Refusal } from './lock-request.js';
import { Lock, type LockGiver } from './lock.js';

interface Outside {
  /** `host:pid` of this process, to name who has the key. */
  readonly holder: string;
  readonly giver: LockGiver;
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
export async function acquireWithin(outers: ReadonlyMap<string, Lock>, request: LockRequest, outside: Outside): Promise<Lock | Refusal | 'outlived'> {
  request.signal?.throwIfAborted();
  const { keys, sharing } = request;
  const doorOf = (key: string): Lock => outers.get(key)!.door(key);
  const gateOf: GateOf = (key) => doorOf(key).inner;
  for (const key of keys) checkSharing(doorOf(key).sharing(key), request);

  const isShared = (key: string): boolean => sharing === 'read' && doorOf(key).sharing(key) === 'read';
  const busy = keys.filter((key) => !isShared(key) || gateOf(key).isBusy(key));
  const passage = await enterKeys(gateOf, { ...request, keys: busy }, { startedAt: now(), holder: outside.holder });
  if (passage !== 'turn') return passage;

  const around = [...new Set(outers.values())];
  if (!around.every((outer) => outer.isHeld)) {
    leaveKeys(gateOf, busy);
    return 'outlived';
  }
  leaveKeys(gateOf, busy.filter(isShared));
  const alone = keys.filter((key) => !isShared(key));
  for (const key of alone) gateOf(key).setFront(key, 'inside');

  let fences = around.map(({ fence }) => fence);
  const readers = [...new Set(alone.filter((key) => doorOf(key).sharing(key) === 'read').map(doorOf))];
  try {
    for (const door of readers) fences = [...fences, (await upgraded(door, around, outside)).fence];
  } catch (error) {
    leaveKeys(gateOf, alone);
    throw error;
  }

  const doors = [...new Set(keys.filter(isShared).map(doorOf))];
  const lock: Lock = new Lock({
    keys,
    fence: Math.max(...fences),
    leases: [...new Set(around.flatMap(({ leases }) => leases))],
    giver: outside.giver,
    request,
    nesting: {
      outers: around,
      isShared,
      async leave() {
        for (const door of doors) door.readers.delete(lock);
        const written = readers.map((door) => outside.giver.changes.downgrade(door.leases[0]!));
        leaveKeys(gateOf, alone);
        await Promise.all(written);
      },
    },
  });
  for (const door of doors) door.readers.add(lock);
  return lock;
}

/** @throws LockOptionsError */
function checkSharing(outer: Sharing, { keys, sharing }: LockRequest): void {
  if (outer === 'exclusive' || outer === sharing || (outer === 'read' && sharing === 'exclusive')) return;
  throw new LockOptionsError(
    `This call asks for ${namesOf(keys)} as ${named(sharing)}, inside a call that has it as ${named(outer)}, and would wait for itself. Ask for the same inside, or for more outside.`,
  );
}

const named = (sharing: Sharing): string => (sharing === 'read' ? 'a reader' : sharing === 'exclusive' ? 'the only holder' : `one of ${sharing.replace(':', ' ')}`);

/**
 * @throws LockOptionsError when others read too
 */
async function upgraded(door: Lock, around: readonly Lock[], { giver }: Outside): Promise<Granted> {
  const alone = [...door.readers].every((reader) => around.some((outer) => outer.isWithin(reader)));
  const grant = alone ? await giver.changes.upgrade(door.leases[0]!) : undefined;
  if (grant) return grant;
  throw new LockOptionsError(
    `This call asks to write under ${namesOf(door.keys)}, inside a call that reads, while others read too: two such calls would wait for each other. ` +
      'Take the lock for writing in the outer call; "lock.downgrade()" lets other readers in when the writing is done.',
  );
}
