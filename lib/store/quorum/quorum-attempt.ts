import { fenceCountFor, type AcquireCommand, type Granted, type Busy } from '../lock-store.js';
import type { QuorumNode, QuorumNodes, Question, Round } from './quorum-nodes.js';

type NodeState = 'asked' | 'granted' | 'refused' | 'failed';

/**
 * One try to get a lock from a majority of the nodes; and then, what is known of who granted it.
 *
 * What it does not get is given back: at once where it was granted, later where the grant comes late. A node whose answer
 * is not known to have come gives it back by itself, as every store does.
 */
export class QuorumAttempt implements Question<Granted | Busy> {
  readonly isImpatient = true;
  /** On how many nodes the lock was taken away by force. */
  readonly lostOn = new Set<number>();
  /** Whether somebody else waits for it. */
  wanted = false;
  readonly #nodes: QuorumNodes;
  readonly #command: AcquireCommand;
  readonly #states: NodeState[];
  readonly #answers: Promise<Granted | Busy>[] = [];
  #granted = 0;
  #fence = 0;
  #holder = '';
  #isLost = false;
  #resolve!: (answer: Granted | Busy) => void;
  #reject!: (error: Error) => void;

  /** @param command its token is of this attempt alone */
  constructor(nodes: QuorumNodes, command: AcquireCommand) {
    this.#nodes = nodes;
    this.#command = command;
    this.#states = nodes.all.map(() => 'asked');
  }

  /** @throws LockUnavailableError when too many nodes fail */
  start(): Promise<Granted | Busy> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#nodes.put(this);
    });
  }

  /**
   * Gives the lock back where it was granted, or may be granted yet. Others have nothing of it: they were not there, or had refused.
   *
   * A node that is just slow is told at once, behind the question, so that our next one does not overtake it; one that hangs when it has
   * answered: else, releases of locks that it never had would pile up.
   */
  release(lock: (node: QuorumNode) => Promise<boolean>): Promise<boolean> {
    return this.#nodes.decide((node, at) => {
      const state = this.#states[at]!;
      if (state === 'asked')
        return this.#nodes.isSilent(at) ? this.#releaseGranted(node, at, lock) : this.#releaseBehind(node, at, lock);
      return state === 'granted' ? lock(node) : Promise.resolve(false);
    }, yesOrNo(this.#nodes));
  }

  /**
   * Gives back what may not be granted yet. The question may come after it all the same, as it is sent again where a server does not know the
   * script, or a connection drops: what is granted to it then is given back once more.
   */
  #releaseBehind(node: QuorumNode, at: number, lock: (node: QuorumNode) => Promise<boolean>): Promise<boolean> {
    const released = lock(node);
    const look = () => {
      if (this.#states[at] === 'asked') void this.#nodes.watched(this.#releaseGranted(node, at, lock));
    };
    released.then(look, look);
    return released;
  }

  #releaseGranted(node: QuorumNode, at: number, lock: (node: QuorumNode) => Promise<boolean>): Promise<boolean> {
    return this.#answers[at]!.then(
      ({ granted }) => granted && lock(node),
      () => false,
    );
  }

  ask(node: QuorumNode, at: number): Promise<Granted | Busy> {
    return (this.#answers[at] = node.acquire(this.#command));
  }

  answered(answer: Granted | Busy, at: number): void {
    if (answer.granted) {
      this.#states[at] = 'granted';
      this.#granted++;
      this.#fence = Math.max(this.#fence, answer.fence);
      if (this.#isLost) this.#giveBack(at);
    } else {
      this.#states[at] = 'refused';
      this.#holder ||= answer.holder;
    }
  }

  failed(_error: Error, at: number): void {
    this.#states[at] = 'failed';
  }

  decides({ errors, pending }: Round): boolean {
    const { majority } = this.#nodes;
    if (this.#granted >= majority) {
      const { token } = this.#command;
      this.#resolve({ granted: true, fence: this.#fence, fenceCount: fenceCountFor(token), contended: true, token });
      return true;
    }
    const outage = this.#nodes.isOutage(errors);
    const outOfReach = this.#granted + pending < majority && errors.length + pending < majority;
    if (!outage && !outOfReach && pending > 0) return false;
    this.#lose();
    if (outage) this.#reject(this.#nodes.unavailable(errors));
    else this.#resolve({ granted: false, holder: this.#holder, leaseLeftMs: 0, ahead: 0, fence: 0 });
    return true;
  }

  #lose(): void {
    this.#isLost = true;
    this.#states.forEach((state, at) => {
      if (state === 'granted') this.#giveBack(at);
    });
  }

  #giveBack(at: number): void {
    void this.#nodes.watched(this.#nodes.all[at]!.cancel(this.#command));
  }
}

/** What a majority says to a question of yes or no. */
export function yesOrNo({ majority }: QuorumNodes): (answers: readonly boolean[]) => boolean | undefined {
  return (answers) => {
    const yes = answers.filter(Boolean).length;
    if (yes >= majority) return true;
    return answers.length - yes >= majority ? false : undefined;
  };
}
