import { now } from '../../clock/deadline.js';
import { nextTick } from '../../clock/next-tick.js';
import { detailOf } from '../../errors/lock.error.js';
import { LockOptionsError } from '../../errors/lock-options.error.js';
import { LockUnavailableError } from '../../errors/lock-unavailable.error.js';
import { coverageOf, storeOutage } from '../../errors/store-outage.js';
import type { LockStore } from '../lock-store.js';
import { NodePulse } from './node-pulse.js';

/** One of the stores that a quorum is made of. */
export interface QuorumNode extends LockStore {
  /** Whether this process has no subscription there, so that the node can't tell it that others wait for its locks. */
  readonly isUnsubscribed: boolean;
  /** Makes every fence larger than this one, from its next reply on at the latest. Neither waits nor throws. */
  raise(fence: number): void;
}

/** A question to all nodes. It gets every reply, also those that come after it has decided. */
export interface Question<Reply> {
  /** Whether it decides without nodes that take much longer than the majority. */
  readonly isImpatient?: boolean;
  /** Whether it gives these nodes the time that they usually take. */
  readonly awaitsUsual?: boolean;
  /** Whether it only looks and changes nothing on a node, so that `idle` does not wait for its replies. */
  readonly isLook?: boolean;
  /** Asks a node, or returns at once what its reply would be. */
  ask(node: QuorumNode, at: number): Reply | Promise<Reply>;
  replied(reply: Reply, at: number): void;
  failed?(error: Error, at: number): void;
  /**
   * Decides, if the replies are enough, and returns whether it did. With `pending` 0 no more replies come in good
   * time: it must decide.
   */
  decides(round: Round): boolean;
}

/** How far a question to all nodes has come. */
export interface Round {
  readonly errors: readonly Error[];
  /** How many may still reply in good time. */
  readonly pending: number;
}

/**
 * How long to wait for the other nodes when the replies of a majority decide nothing, in ms: twice as long as the
 * majority took, and at least this long. A renewal also waits until each node that does not hang has had twice the time
 * that it usually takes: a lock is at stake, while other calls just ask again.
 */
const LEAST_GRACE_MS = 20;

/** Asks several independent stores at once, and does not wait for the slowest of them. */
export class QuorumNodes {
  readonly all: readonly QuorumNode[];
  /** The smallest number of nodes that is more than half. */
  readonly majority: number;
  readonly #pulses: readonly NodePulse[];
  #inFlight = 0;
  #onIdle: (() => void) | undefined;

  /** @throws LockOptionsError for a number of nodes that can't be a quorum */
  constructor(nodes: readonly QuorumNode[]) {
    const problem = quorumSizeProblem(nodes.length);
    if (problem) throw new LockOptionsError(`A quorum can't be made of ${nodes.length} nodes: ${problem}.`);
    this.all = nodes;
    this.majority = (nodes.length + 1) / 2;
    this.#pulses = nodes.map(() => new NodePulse());
  }

  /**
   * Whether a majority can't tell this process that others wait for its locks. Otherwise each of its locks is on a node
   * that can, because two majorities have a node in common.
   */
  get isUnsubscribed(): boolean {
    return this.all.filter(({ isUnsubscribed }) => isUnsubscribed).length >= this.majority;
  }

  /** Asks all nodes at once. */
  put<Reply>(question: Question<Reply>): void {
    const askedAt = now();
    const errors: Error[] = [];
    const awaited = new Set(this.all.keys());
    let replies = 0;
    let decided = false;
    let grace: NodeJS.Timeout | undefined;
    const look = (late = false) => {
      if (decided) return;
      decided = question.decides({ errors, pending: late ? 0 : awaited.size });
      if (decided) return clearTimeout(grace);
      if (!question.isImpatient || replies < this.majority || awaited.size === 0 || grace) return;
      const tookMs = now() - askedAt;
      const usualMs = question.awaitsUsual ? this.#patienceMs(awaited) - tookMs : 0;
      // Timers run before sockets are read: after a stall of the process, the replies may be there already.
      grace = setTimeout(() => setImmediate(() => look(true)), Math.max(LEAST_GRACE_MS, 2 * tookMs, usualMs));
    };
    for (let at = 0; at < this.all.length; at++) {
      const asked = question.ask(this.all[at]!, at);
      // What is known at once says nothing of how the node replies.
      const pulse = asked instanceof Promise ? this.#pulses[at] : undefined;
      pulse?.asked();
      if (!question.isLook) this.#inFlight++;
      Promise.resolve(asked).then(
        (reply) => {
          if (!question.isLook) this.#ended();
          // Others may wait for something else, or ask a process by way of the node.
          pulse?.replied(question.isImpatient ? now() - askedAt : undefined);
          awaited.delete(at);
          replies++;
          question.replied(reply, at);
          look();
        },
        (error: Error) => {
          if (!question.isLook) this.#ended();
          pulse?.failed();
          awaited.delete(at);
          errors.push(error);
          question.failed?.(error, at);
          look();
        },
      );
    }
  }

  /** Returns how long to wait for those of these nodes that do not seem to hang. */
  #patienceMs(nodes: ReadonlySet<number>): number {
    const pulses = [...nodes].map((at) => this.#pulses[at]!);
    return Math.max(0, ...pulses.map(({ isSilent, patienceMs }) => (isSilent ? 0 : patienceMs)));
  }

  /**
   * Asks all nodes what a majority can decide, and changes nothing on them.
   *
   * @param otherwise decides when a majority has replied, but does not agree, and the others fail or are slow: as while
   *   a key changes hands
   * @throws LockUnavailableError when too many nodes fail
   */
  look<Reply, Verdict>(
    ask: (node: QuorumNode) => Promise<Reply>,
    verdict: (replies: readonly Reply[]) => Verdict | undefined,
    otherwise: (replies: readonly Reply[]) => Verdict,
  ): Promise<Verdict> {
    return this.decide(ask, verdict, otherwise);
  }

  /** Whether a node seems to hang, or to be down. */
  isSilent(at: number): boolean {
    return this.#pulses[at]!.isSilent;
  }

  /**
   * Asks all nodes what a majority can decide.
   *
   * @param otherwise only of a look: see there
   * @throws LockUnavailableError when too many nodes fail; otherwise the error with which a node refuses
   */
  decide<Reply, Verdict>(
    ask: (node: QuorumNode, at: number) => Reply | Promise<Reply>,
    verdict: (replies: readonly Reply[]) => Verdict | undefined,
    otherwise?: (replies: readonly Reply[]) => Verdict,
  ): Promise<Verdict> {
    const replies: Reply[] = [];
    const isLook = otherwise !== undefined;
    return new Promise((resolve, reject) => {
      this.put({
        isLook,
        isImpatient: isLook,
        ask,
        replied: (reply) => void replies.push(reply),
        decides: ({ errors, pending }) => {
          const decided = verdict(replies);
          if (decided !== undefined) resolve(decided);
          else if (this.isOutage(errors)) reject(this.unavailable(errors));
          else if (pending > 0) return false;
          else if (otherwise) resolve(otherwise(replies));
          else reject(this.unavailable(errors));
          return true;
        },
      });
    });
  }

  /** Whether so many nodes failed that the others are no majority, or one of them refused the question itself. */
  isOutage(errors: readonly Error[]): boolean {
    return errors.length >= this.majority || errors.some((error) => !(error instanceof LockUnavailableError));
  }

  /** Returns the error of a question to which too many nodes failed, in their own words. */
  unavailable(errors: readonly Error[]): Error {
    const refused = errors.find((error) => !(error instanceof LockUnavailableError));
    if (refused) return refused;
    const reasons = [...new Set(errors.map(detailOf))].join(' ');
    const unavailable = new LockUnavailableError(
      `${errors.length} of ${this.all.length} nodes failed, and a lock needs ${this.majority} that agree. ${reasons}`,
      new AggregateError(errors, reasons),
    );
    return errors.filter(coverageOf).length < this.majority ? unavailable : storeOutage(unavailable);
  }

  /** Makes `idle` wait for this too. */
  watched<T>(reply: Promise<T>): Promise<T> {
    this.#inFlight++;
    reply.then(this.#ended, this.#ended);
    return reply;
  }

  /** Does this in the next tick, which `idle` waits for. */
  inNextTick(work: () => void): void {
    this.#inFlight++;
    nextTick(() => {
      work();
      this.#ended();
    });
  }

  /**
   * Waits until no call that changes something is in flight: each settles within the time-out of its node. It does not
   * wait for looks: as long as somebody looks again and again at nodes that hang, one of them is always in flight.
   */
  async idle(): Promise<void> {
    while (this.#inFlight > 0) await new Promise<void>((resolve) => (this.#onIdle = resolve));
  }

  readonly #ended = (): void => {
    if (--this.#inFlight === 0) this.#onIdle?.();
  };
}

/** Says why a quorum can't have this many nodes; undefined if it can. */
export function quorumSizeProblem(count: number): string | undefined {
  if (count < 3) return 'it needs at least three independent masters, so that one may fail';
  if (count % 2 === 1) return undefined;
  return `an even number tolerates no more failures than ${count - 1} would, and two callers can get half each`;
}
