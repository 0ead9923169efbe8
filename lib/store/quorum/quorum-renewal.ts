import { LockUnavailableError } from '../../errors/lock-unavailable.error.js';
import type { OwnedLock, RenewalOutcome } from '../lock-store.js';
import type { QuorumNode, QuorumNodes, Question, Round } from './quorum-nodes.js';

interface Votes {
  renewed: number;
  gone: number;
}

/** Whether a node is known to keep a lock, so that its renewal there counts. */
export type IsGrantedOn = (lock: OwnedLock, at: number) => boolean;

/** Renews many locks on a majority of the nodes. Each lock has a majority of its own. */
export class QuorumRenewal implements Question<RenewalOutcome> {
  readonly isImpatient = true;
  readonly awaitsUsual = true;
  readonly #nodes: QuorumNodes;
  readonly #votes: ReadonlyMap<OwnedLock, Votes>;
  readonly #isGrantedOn: IsGrantedOn;
  readonly #resolve: (outcome: RenewalOutcome) => void;
  readonly #reject: (error: Error) => void;

  private constructor(
    nodes: QuorumNodes,
    locks: readonly OwnedLock[],
    isGrantedOn: IsGrantedOn,
    resolve: (outcome: RenewalOutcome) => void,
    reject: (error: Error) => void,
  ) {
    this.#nodes = nodes;
    this.#isGrantedOn = isGrantedOn;
    this.#votes = new Map(locks.map((lock) => [lock, { renewed: 0, gone: 0 }]));
    this.#resolve = resolve;
    this.#reject = reject;
  }

  /**
   * A lock is gone when a majority says so, and unknown when no majority agrees.
   *
   * @throws LockUnavailableError when too many nodes fail
   */
  static of(nodes: QuorumNodes, locks: readonly OwnedLock[], isGrantedOn: IsGrantedOn): Promise<RenewalOutcome> {
    return new Promise((resolve, reject) => nodes.put(new QuorumRenewal(nodes, locks, isGrantedOn, resolve, reject)));
  }

  ask(node: QuorumNode): Promise<RenewalOutcome> {
    return node.renew([...this.#votes.keys()]);
  }

  replied({ gone, unknown }: RenewalOutcome, at: number): void {
    const goneThere = new Set(gone);
    const unknownThere = new Set(unknown);
    for (const [lock, votes] of this.#votes) {
      if (goneThere.has(lock)) votes.gone++;
      else if (!unknownThere.has(lock) && this.#isGrantedOn(lock, at)) votes.renewed++;
    }
  }

  decides({ errors, pending }: Round): boolean {
    const { majority } = this.#nodes;
    const gone: OwnedLock[] = [];
    const unknown: OwnedLock[] = [];
    for (const [lock, votes] of this.#votes) {
      if (votes.gone >= majority) gone.push(lock);
      else if (votes.renewed < majority) unknown.push(lock);
    }
    if (unknown.length === 0) this.#resolve({ gone, unknown });
    else if (this.#nodes.isOutage(errors)) this.#reject(this.#nodes.unavailable(errors));
    else if (pending > 0) return false;
    else if (unknown.length < this.#votes.size) this.#resolve({ gone, unknown });
    else
      this.#reject(
        new LockUnavailableError(
          'No majority of the nodes said whether the locks were renewed.',
          new AggregateError(errors),
        ),
      );
    return true;
  }
}
