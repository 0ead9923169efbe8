import { now } from '../../clock/deadline.js';
import { fenceCountFor, type AcquireCommand, type Busy, type ForcedUnlock, type Granted } from '../lock-store.js';
import type { QuorumNode, QuorumNodes, Question, Round } from './quorum-nodes.js';

type NodeState = 'asked' | 'granted' | 'refused' | 'failed';

/**
 * Tries once to acquire a lock on a majority of the nodes, and then knows which nodes granted it.
 *
 * If it fails, it releases the lock: at once on the nodes that granted it, later on those whose grant comes late. A
 * node whose reply is lost releases by itself, as every store does.
 */
export class QuorumAttempt implements Question<Granted | Busy> {
  readonly isImpatient = true;
  /** Whether another process waits for the lock. */
  contended = false;
  readonly #nodes: QuorumNodes;
  readonly #command: AcquireCommand;
  readonly #forcedAway: (forced: ForcedUnlock) => void;
  readonly #states: NodeState[];
  readonly #replies: Promise<Granted | Busy>[] = [];
  /** The nodes on which the lock was released by force. */
  readonly #forcedOn = new Set<number>();
  #forced: ForcedUnlock = {};
  #fence = 0;
  /** How many of the nodes that refused name each holder. */
  readonly #holders = new Map<string, number>();
  #raiseTo = 0;
  #outcome: 'open' | 'granted' | 'lost' | 'forced away' = 'open';
  #lastsUntil = 0;
  #resolve!: (reply: Granted | Busy) => void;
  #reject!: (error: Error) => void;

  /**
   * @param command with a token of this attempt alone
   * @param forcedAway called when the lock was granted, and was released by force on so many nodes that no majority has
   *   it any more
   */
  constructor(nodes: QuorumNodes, command: AcquireCommand, forcedAway: (forced: ForcedUnlock) => void) {
    this.#nodes = nodes;
    this.#command = command;
    this.#forcedAway = forcedAway;
    this.#states = nodes.all.map(() => 'asked');
    this.mayLastFor(command.leaseMs);
  }

  /** Whether the lease is over. */
  get isOver(): boolean {
    return now() >= this.#lastsUntil;
  }

  get isGranted(): boolean {
    return this.#outcome === 'granted';
  }

  /**
   * Whether it failed though no holder was seen on a majority: callers that ask at the same moment may get a minority
   * each.
   */
  get hasCollided(): boolean {
    return this.#outcome === 'lost' && ![...this.#holders.values()].some((count) => count >= this.#nodes.majority);
  }

  /** Notes that the nodes are asked to keep the lock for that long from now on. */
  mayLastFor(leaseMs: number): void {
    this.#lastsUntil = Math.max(this.#lastsUntil, now() + leaseMs);
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
   * Makes every later fence larger than this one on each node that has replied, and on each other when it replies: its
   * own grant mostly brings that fence. A majority has replied, and every later majority has one of those nodes in it.
   */
  raise(fence: number): void {
    this.#raiseTo = fence;
    this.#nodes.all.forEach((node, at) => {
      if (this.#states[at] !== 'asked') node.raise(fence);
    });
  }

  /**
   * Releases the lock on the nodes that granted it, or may still do so. The others have nothing of it: they failed or
   * refused.
   *
   * A node that is just slow gets the release at once, behind the question, so that our next question does not
   * overtake it. A node that hangs gets it when it has replied: otherwise releases of locks that it never had would
   * pile up.
   */
  release(lock: (node: QuorumNode) => Promise<boolean>): Promise<boolean> {
    return this.#nodes.decide((node, at) => {
      const state = this.#states[at]!;
      if (state === 'asked')
        return this.#nodes.isSilent(at) ? this.#releaseGranted(node, at, lock) : this.#releaseBehind(node, at, lock);
      return state === 'granted' && lock(node);
    }, yesOrNo(this.#nodes));
  }

  /**
   * Releases what may not be granted yet. The question may arrive after the release all the same, because it is
   * resent when a server does not know the script, or when a connection drops. What is granted then is released once
   * more.
   */
  #releaseBehind(node: QuorumNode, at: number, lock: (node: QuorumNode) => Promise<boolean>): Promise<boolean> {
    const released = lock(node);
    const again = () => void this.#nodes.watched(this.#releaseGranted(node, at, lock));
    released.then((wasHeld) => {
      // A release that found nothing came first, though both replies may have arrived together.
      if (!wasHeld) return again();
      if (this.#states[at] !== 'asked') return;
      // The reply of the grant, which came first, has further promises to pass. No later reply comes before the next
      // tick.
      this.#nodes.inNextTick(() => {
        if (this.#states[at] === 'asked') again();
      });
    }, again);
    return released;
  }

  #releaseGranted(node: QuorumNode, at: number, lock: (node: QuorumNode) => Promise<boolean>): Promise<boolean> {
    return this.#replies[at]!.then(
      ({ granted }) => granted && lock(node),
      () => false,
    );
  }

  /**
   * Whether a node is known to keep the lock. What any other says of it does not count: a node whose acquire failed may
   * have granted it all the same, but its store takes it back as soon as it can.
   */
  isGrantedOn(at: number): boolean {
    return this.#states[at] === 'granted';
  }

  /** Notes that the lock was released by force on a node. The reply of the grant there may come later. */
  wasForcedOn(at: number, forced: ForcedUnlock): void {
    this.#forcedOn.add(at);
    this.#forced = forced;
    this.#lookWhetherForcedAway();
  }

  ask(node: QuorumNode, at: number): Promise<Granted | Busy> {
    return (this.#replies[at] = node.acquire(this.#command));
  }

  replied(reply: Granted | Busy, at: number): void {
    if (reply.granted) {
      this.#states[at] = 'granted';
      this.#fence = Math.max(this.#fence, reply.fence);
      if (this.#outcome === 'lost') this.#giveBack(at);
    } else {
      this.#states[at] = 'refused';
      this.#holders.set(reply.holder, (this.#holders.get(reply.holder) ?? 0) + 1);
    }
    this.#noteState(at);
  }

  failed(_error: Error, at: number): void {
    this.#states[at] = 'failed';
    this.#noteState(at);
  }

  #noteState(at: number): void {
    if (this.#raiseTo > 0) this.#nodes.all[at]!.raise(this.#raiseTo);
    this.#lookWhetherForcedAway();
  }

  /** A node that has not replied yet may grant it. */
  #lookWhetherForcedAway(): void {
    if (this.#outcome !== 'granted' || this.#forcedOn.size === 0) return;
    if (this.#countOf('granted', 'asked') >= this.#nodes.majority) return;
    this.#outcome = 'forced away';
    this.#forcedAway(this.#forced);
  }

  /** Counts the nodes in these states, but for those on which the lock was released by force. */
  #countOf(...states: readonly NodeState[]): number {
    return this.#states.filter((state, at) => states.includes(state) && !this.#forcedOn.has(at)).length;
  }

  decides({ errors, pending }: Round): boolean {
    const { majority } = this.#nodes;
    const granted = this.#countOf('granted');
    if (granted >= majority) {
      this.#outcome = 'granted';
      const { token } = this.#command;
      this.#resolve({ granted: true, fence: this.#fence, fenceCount: fenceCountFor(token), contended: true, token });
      return true;
    }
    const outage = this.#nodes.isOutage(errors);
    const outOfReach = granted + pending < majority && errors.length + pending < majority;
    if (!outage && !outOfReach && pending > 0) return false;
    this.#lose();
    if (outage) this.#reject(this.#nodes.unavailable(errors));
    else this.#resolve({ granted: false, holder: this.#holder, leaseLeftMs: 0, ahead: 0, fence: 0 });
    return true;
  }

  get #holder(): string {
    return [...this.#holders.keys()].find(Boolean) ?? '';
  }

  #lose(): void {
    this.#outcome = 'lost';
    this.#states.forEach((state, at) => {
      if (state === 'granted') this.#giveBack(at);
    });
  }

  #giveBack(at: number): void {
    void this.#nodes.watched(this.#nodes.all[at]!.cancel(this.#command));
  }
}

/** Returns the verdict of a majority on a yes-or-no question. */
export function yesOrNo({ majority }: QuorumNodes): (replies: readonly boolean[]) => boolean | undefined {
  return (replies) => {
    const yes = replies.filter(Boolean).length;
    if (yes >= majority) return true;
    return replies.length - yes >= majority ? false : undefined;
  };
}
