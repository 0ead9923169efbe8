import type { KeyView } from '../lock-store.js';
import type { QuorumNodes } from './quorum-nodes.js';

type Views = readonly (KeyView | undefined)[];

/**
 * Finds the holder of a key from the views of the nodes: the token that a majority names, with the lease that a
 * majority keeps. The key is free when no token can reach a majority any more.
 */
export function viewOfMajority({ majority, all }: QuorumNodes): (views: Views) => KeyView | 'free' | undefined {
  return (views) => {
    const { token, lefts } = mostNamed(views);
    if (lefts.length >= majority) return heldBy(token, lefts[majority - 1]!);
    return lefts.length + all.length - views.length < majority ? 'free' : undefined;
  };
}

/**
 * Shows the token that most nodes name as the holder, where too few nodes reply to say more: nobody else can get the
 * key meanwhile.
 */
export function likelyView(views: Views): KeyView {
  const { token, lefts } = mostNamed(views);
  return heldBy(token, lefts[0]!);
}

/** The token that most nodes name, and what is left of its lease on each, longest first. */
function mostNamed(views: Views): { token: string; lefts: readonly number[] } {
  const byToken = new Map<string, number[]>();
  for (const view of views) {
    for (const { token, leaseLeftMs } of view?.holders ?? [])
      byToken.set(token, [...(byToken.get(token) ?? []), leaseLeftMs]);
  }
  let most: { token: string; lefts: number[] } = { token: '', lefts: [] };
  for (const [token, lefts] of byToken) if (lefts.length > most.lefts.length) most = { token, lefts };
  most.lefts.sort((one, other) => other - one);
  return most;
}

const heldBy = (token: string, leaseLeftMs: number): KeyView => ({
  sharing: 'exclusive',
  holders: [{ token, leaseLeftMs }],
  waiters: [],
});
