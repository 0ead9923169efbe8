import type { WaitEdge, WaitGraph } from '../../lib/page/page-snapshot.js';

/** A call, or the key that somebody holds who waits for nothing. */
export interface GraphNode {
  readonly id: string;
  /** Undefined for a call that the list does not have. */
  readonly call: WaitGraph['calls']['items'][number] | undefined;
  readonly x: number;
  readonly y: number;
  readonly isInCycle: boolean;
}

export interface GraphEdge {
  readonly from: GraphNode;
  readonly to: GraphNode;
  readonly key: string;
  readonly isInCycle: boolean;
}

export interface GraphLayout {
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
  readonly columns: number;
  readonly rows: number;
}

/**
 * Places the calls that wait for each other: each one column left of the call that it waits for, as far as circles allow
 * it. Columns and rows are whole numbers.
 */
export function layoutOf({ calls, edges, cycles }: Pick<WaitGraph, 'calls' | 'edges' | 'cycles'>): GraphLayout {
  const between = edges.filter((edge): edge is WaitEdge & { to: string } => edge.to !== null);
  const ids = [...new Set(between.flatMap(({ from, to }) => [from, to]))];
  const next = new Map(ids.map((id) => [id, between.filter(({ from }) => from === id).map(({ to }) => to)]));
  const ranks = ranksOf(ids, next);
  const last = Math.max(0, ...ranks.values());
  const inCycle = new Set(cycles.flat());
  const filled: number[] = [];
  const nodes = new Map<string, GraphNode>();
  for (const id of ids) {
    const x = last - ranks.get(id)!;
    const y = filled[x] ?? 0;
    filled[x] = y + 1;
    nodes.set(id, { id, call: calls.items.find((call) => call.id === id), x, y, isInCycle: inCycle.has(id) });
  }
  return {
    nodes: [...nodes.values()],
    edges: between.map(({ from, to, key, isInCycle }) => ({
      from: nodes.get(from)!,
      to: nodes.get(to)!,
      key,
      isInCycle,
    })),
    columns: last + 1,
    rows: Math.max(0, ...filled),
  };
}

/** How many calls are ahead of each; an edge that closes a circle does not count. */
function ranksOf(ids: readonly string[], next: ReadonlyMap<string, readonly string[]>): Map<string, number> {
  const ranks = new Map<string, number>();
  const open = new Set<string>();
  const rankOf = (id: string): number => {
    const known = ranks.get(id);
    if (known !== undefined) return known;
    open.add(id);
    const ahead = next
      .get(id)!
      .filter((to) => !open.has(to))
      .map(rankOf);
    open.delete(id);
    const rank = Math.max(-1, ...ahead) + 1;
    ranks.set(id, rank);
    return rank;
  };
  for (const id of ids) rankOf(id);
  return ranks;
}
