import type { KeyView } from '../lock-store.js';
import type { QuorumNodes } from './quorum-nodes.js';

/**
 * Who has a key, by what the nodes say one by one: whoever is named by a majority, for as long as a majority keeps it. Nobody, when
 * a majority has answered and all of them have been heard, or can't agree any more.
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
