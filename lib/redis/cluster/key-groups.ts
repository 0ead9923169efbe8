import { ALIVE_MS, type OwnedLock } from '../../store/lock-store.js';
import type { ClusterNames } from './cluster-names.js';

/** The keys of a lock that lie in one slot, in their order. */
export interface KeyGroup {
  readonly slot: number;
  readonly keys: string[];
}

/** Groups the keys of a lock by slot, in the order in which every caller acquires them. */
export function keyGroups(names: ClusterNames, keys: readonly string[]): readonly KeyGroup[] {
  const groups = new Map<number, KeyGroup>();
  for (const key of keys) {
    const slot = names.slot(key);
    const group = groups.get(slot);
    if (group) group.keys.push(key);
    else groups.set(slot, { slot, keys: [key] });
  }
  return [...groups.values()].sort((a, b) => a.slot - b.slot);
}

/** Groups locks by slot. A lock with keys in several slots is a group of its own. */
export function renewalGroups<Lock extends OwnedLock>(
  names: ClusterNames,
  locks: readonly Lock[],
): readonly (readonly Lock[])[] {
  const alone: Lock[][] = [];
  const bySlot = new Map<number, Lock[]>();
  for (const lock of locks) {
    const [{ slot }, ...others] = keyGroups(names, lock.keys) as [KeyGroup, ...KeyGroup[]];
    const neighbours = bySlot.get(slot);
    if (others.length > 0) alone.push([lock]);
    else if (neighbours) neighbours.push(lock);
    else bySlot.set(slot, [lock]);
  }
  return [...bySlot.values(), ...alone];
}

/** Returns the lock with a lease as short as a waiter counts as alive. */
export const briefly = (lock: OwnedLock): OwnedLock => ({ ...lock, leaseMs: Math.min(lock.leaseMs, ALIVE_MS) });

/** Returns the part of a lock that these keys make. */
export const part = <Lock extends OwnedLock>(lock: Lock, keys: readonly string[]): Lock => ({ ...lock, keys });
