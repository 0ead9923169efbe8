import type { KeyView } from '../lock-store.js';
import type { QuorumNodes } from './quorum-nodes.js';

/**
 * Finds the holder of a key from the views of the nodes: the token that a majority names, with the lease that a
 * majority keeps. The key is free when no token can reach a majority any more.
 */
export function viewOfMajority({
  majority,
  all,
}: QuorumNodes): (views: readonly (KeyView | undefined)[]) => KeyView | 'free' | undefined {
  return (views) => {
    const lefts = new Map<string, number[]>();
    for (const view of views) {
      for (const { token, leaseLeftMs } of view?.holders ?? [])
        lefts.set(token, [...(lefts.get(token) ?? []), leaseLeftMs]);
    }
    for (const [token, left] of lefts) {
      if (left.length < majority) continue;
      const leaseLeftMs = left.sort((one, other) => other - one)[majority - 1]!;
      return { sharing: 'exclusive', holders: [{ token, leaseLeftMs }], waiters: [] };
    }
    const most = Math.max(0, ...[...lefts.values()].map(({ length }) => length));
    return most + all.length - views.length < majority ? 'free' : undefined;
  };
}
