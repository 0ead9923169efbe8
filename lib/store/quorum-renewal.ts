import type { Renewal } from './lock-store.js';
import { PartlyRenewedError } from './partly-renewed.error.js';
import type { QuorumNode, QuorumNodes, Question, Round } from './quorum-nodes.js';

interface Votes {
  renewed: number;
  gone: number;
}

/** Renews many locks on a majority of the nodes, each lock for itself. */
export class QuorumRenewal implements Question<readonly Renewal[]> {
  readonly isImpatient = true;
  readonly #nodes: QuorumNodes;
  readonly #votes: ReadonlyMap<Renewal, Votes>;
  readonly #resolve: (gone: readonly Renewal[]) => void;
  readonly #reject: (error: Error) => void;

  private constructor(nodes: QuorumNodes, locks: readonly Renewal[], resolve: (gone: readonly Renewal[]) => void, reject: (error: Error) => void) {
    this.#nodes = nodes;
    this.#votes = new Map(locks.map((lock) => [lock, { renewed: 0, gone: 0 }]));
    this.#resolve = resolve;
    this.#reject = reject;
  }

  /**
   * Answers those that a majority says are gone.
   *
   * @throws PartlyRenewedError when that is not known of some
   * @throws LockUnavailableError when too many nodes fail
   */
  static of(nodes: QuorumNodes, locks: readonly Renewal[]): Promise<readonly Renewal[]> {
    return new Promise((resolve, reject) => nodes.put(new QuorumRenewal(nodes, locks, resolve, reject)));
  }

  ask(node: QuorumNode): Promise<readonly Renewal[]> {
    return node.renew([...this.#votes.keys()]);
  }

  answered(gone: readonly Renewal[]): void {
    const goneThere = new Set(gone);
    for (const [lock, votes] of this.#votes) {
      if (goneThere.has(lock)) votes.gone++;
      else votes.renewed++;
    }
  }

  decides({ errors, pending }: Round): boolean {
    const { majority } = this.#nodes;
    const gone: Renewal[] = [];
    const unknown: Renewal[] = [];
    for (const [lock, votes] of this.#votes) {
      if (votes.gone >= majority) gone.push(lock);
      else if (votes.renewed < majority) unknown.push(lock);
    }
    if (unknown.length === 0) this.#resolve(gone);
    else if (this.#nodes.isOutage(errors)) this.#reject(this.#nodes.unavailable(errors));
    else if (pending > 0) return false;
    else this.#reject(new PartlyRenewedError(`Of ${unknown.length} locks no majority of the nodes said whether they were renewed.`, gone, unknown, new AggregateError(errors)));
    return true;
  }
}
