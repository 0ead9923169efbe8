import type { WaitEdge, WaitGraph, WaitingCall } from '../page-snapshot.js';
import { circlesOf } from './circles.js';

/** Most calls that are shown. */
const MOST_CALLS = 100;

/** A call that waits, and how it would share the keys. */
export interface GraphCall extends WaitingCall {
  readonly mode: 'exclusive' | 'read' | 'permit';
}

/** Finds out which of the calls that hold something wait for each other. */
export function waitGraphOf(calls: readonly GraphCall[]): WaitGraph {
  const holders = new Map<string, GraphCall[]>();
  for (const call of calls) for (const key of call.holds) holders.set(key, [...(holders.get(key) ?? []), call]);
  const edges = calls.flatMap((call) => edgesOf(call, holders));
  // Those that wait for a permit may get it from somebody else.
  const permits = new Set(calls.filter(({ mode }) => mode === 'permit').map(({ id }) => id));
  const next = new Map(calls.map(({ id }) => [id, [] as string[]]));
  for (const { from, to } of edges) if (to !== null && !permits.has(from)) next.get(from)!.push(to);
  const cycles = circlesOf(next);
  const cycleOf = new Map(cycles.flatMap((cycle, number) => cycle.map((id) => [id, number] as const)));
  const isInCycle = ({ from, to }: Pick<WaitEdge, 'from' | 'to'>): boolean =>
    to !== null && !permits.has(from) && cycleOf.has(from) && cycleOf.get(from) === cycleOf.get(to);
  // Deadlocks first: the list is cut off.
  const shown = [...calls].sort((a, b) => Number(cycleOf.has(b.id)) - Number(cycleOf.has(a.id))).slice(0, MOST_CALLS);
  const ids = new Set(shown.map(({ id }) => id));
  return {
    calls: { total: calls.length, items: shown },
    edges: edges.filter(({ from }) => ids.has(from)).map((edge) => ({ ...edge, isInCycle: isInCycle(edge) })),
    cycles,
  };
}

function edgesOf(call: GraphCall, holders: ReadonlyMap<string, readonly GraphCall[]>): Omit<WaitEdge, 'isInCycle'>[] {
  return call.waitsFor.flatMap((key): Omit<WaitEdge, 'isInCycle'>[] => {
    const others = (holders.get(key) ?? []).filter(({ id }) => id !== call.id);
    if (others.length === 0) return [{ from: call.id, key, to: null }];
    return others.map(({ id }) => ({ from: call.id, key, to: id }));
  });
}
