import { AsyncResource } from 'node:async_hooks';
import { now } from '../../clock/deadline.js';
import { waitFor } from '../../clock/wait-for.js';
import { ChurnMap } from '../../collections/churn-map.js';
import { LinkedQueue, type QueueNode } from '../../collections/linked-queue.js';
import type { LockRequest } from '../request/lock-request.js';
import type { WaitingCall } from './waiting-call.js';

/** How a caller waits for its turn. */
export interface TurnWait<Entered, Late> {
  readonly request: LockRequest;
  readonly untilMs: number;
  readonly signals: readonly AbortSignal[];
  /** Begins the turn, in the async context of the caller. Does not throw. */
  readonly takeTurn: () => Entered | Promise<Entered>;
  /** Makes the result when `untilMs` comes first. */
  readonly late: () => Late | Promise<Late>;
}

/** A caller that waits: for its turn to acquire the lock, or for the lock itself, from the caller before. */
interface Waiter<HandedOff> {
  readonly request: LockRequest;
  readonly startedAt: number;
  readonly signals: readonly AbortSignal[];
  readonly enter: () => void;
  receive(handedOff: HandedOff): void;
  readonly fail: (error: unknown) => void;
}

/** A caller that does not wait: it only wants to know how the first try of the caller in front ends. */
interface Probe {
  readonly request: LockRequest;
  /** Gets whether the store has answered. */
  readonly report: (isAnswered: boolean) => void;
  readonly fail: (error: unknown) => void;
}

/**
 * What the caller in front does: it tries the store for the first time; waits in the store (and counts as a waiter
 * then); or has the lock. Or it waited for its turn only, and is about to leave.
 */
type Stage = 'trying' | 'waiting' | 'inside' | 'leaving';

/** A lease, as far as it is known. */
interface KnownLease {
  /** When it ends if nobody renews it, by the monotonic clock. */
  readonly endsAt: number;
  readonly token: string;
}

/** A key for which a caller of this process has its turn. */
interface Turn<HandedOff> {
  stage: Stage;
  /** The lease of the holder: the caller in front, or who keeps it waiting. */
  lease: KnownLease | undefined;
  /** Callers behind, by arrival. */
  queue: LinkedQueue<Waiter<HandedOff>> | undefined;
  probes: LinkedQueue<Probe> | undefined;
}

/**
 * Gives the callers of one process their turns: one at a time for each key, first come, first served.
 * So a process sends the store one caller for a key, however many wait.
 *
 * @typeParam HandedOff what a caller may hand off to the next one in the place of the turn
 */
export class LocalQueue<HandedOff> {
  readonly #turns = new ChurnMap<string, Turn<HandedOff>>();
  /** How many wait in the store without a turn here. */
  readonly #waitingInStore = new ChurnMap<string, number>();
  /** Why nobody waits here any more. */
  #closed: { readonly error: unknown } | undefined;

  /** Whether no caller of this process has the turn. */
  isFree(key: string): boolean {
    return !this.#turns.has(key);
  }

  /** Takes the turn if no caller of this process has it. */
  tryEnter(key: string): boolean {
    if (this.#turns.has(key)) return false;
    this.#turns.set(key, { stage: 'trying', lease: undefined, queue: undefined, probes: undefined });
    return true;
  }

  /**
   * Queues for the turn of a busy key. What the caller before hands off is the result itself, without another promise
   * between: each takes a µs in which nobody has the lock.
   *
   * @throws the reason of a signal that aborts, or what the caller in front failed with
   */
  enter<Entered, Late>(
    key: string,
    { request, untilMs, signals, takeTurn, late }: TurnWait<Entered, Late>,
  ): Promise<HandedOff | Entered | Late> {
    const turn = this.#turns.get(key);
    if (!turn) {
      this.tryEnter(key);
      return Promise.resolve(takeTurn());
    }
    if (this.#closed) return Promise.reject(this.#closed.error);
    const queue = (turn.queue ??= new LinkedQueue());
    const startedAt = now();
    const caller = new AsyncResource('LockTurn');
    let node: QueueNode<Waiter<HandedOff>>;
    return waitFor<HandedOff | Entered, Late>(
      untilMs,
      signals,
      (receive, fail) => {
        const enter = (): void => receive(caller.runInAsyncScope(takeTurn));
        node = queue.add({ request, startedAt, signals, enter, receive, fail });
      },
      () => queue.remove(node),
      late,
    );
  }

  /**
   * Waits until the store has answered the first try of the caller in front; or of the next one, if that leaves without
   * an answer.
   *
   * @returns whether the store has answered: otherwise, nobody is in front any more
   * @throws what that one failed with, or the reason of a signal that aborts
   */
  async firstTryOfFront(key: string, signals: readonly AbortSignal[], request: LockRequest): Promise<boolean> {
    let isAnswered: boolean | undefined;
    do {
      const turn = this.#turns.get(key);
      if (turn?.stage !== 'trying') return turn !== undefined;
      const probes = (turn.probes ??= new LinkedQueue());
      let node: QueueNode<Probe>;
      isAnswered = await waitFor<boolean>(
        Infinity,
        signals,
        (report, fail) => (node = probes.add({ request, report, fail })),
        () => probes.remove(node),
      );
    } while (!isAnswered);
    return true;
  }

  /** What the first waiter asks for. */
  next(key: string): LockRequest | undefined {
    return firstWaiter(this.#turns.get(key))?.request;
  }

  /** Gives the first waiter what the caller in front has, along with its turn. */
  handOff(key: string, handedOff: HandedOff): void {
    firstWaiter(this.#turns.get(key))?.receive(handedOff);
  }

  /** Gives the turn to the first waiter, or ends it. */
  leave(key: string): void {
    const turn = this.#turns.get(key);
    if (!turn) return;
    reportTo(turn.probes, turn.stage !== 'trying');
    const next = firstWaiter(turn);
    if (!next) {
      this.#turns.delete(key);
      return;
    }
    turn.stage = next.request.leavesAtOnce ? 'leaving' : 'trying';
    turn.lease = undefined;
    next.enter();
  }

  /**
   * Fails the callers behind, because the store did not answer the one in front: they would meet the same, one time-out
   * after the other.
   *
   * @param meetsTheSame whether a caller behind would; the others go on
   */
  fail(key: string, error: unknown, meetsTheSame: (request: LockRequest) => boolean = () => true): void {
    const turn = this.#turns.get(key);
    for (const { request, fail } of [...(turn?.probes?.all() ?? []), ...(turn?.queue?.all() ?? [])]) {
      if (meetsTheSame(request)) fail(error);
    }
  }

  /** Ends all waiting, for good. */
  failAll(error: unknown): void {
    this.#closed = { error };
    for (const key of this.#turns.keys()) this.fail(key, error);
  }

  /** Gives everybody the turn at once, because there is nothing left to protect. */
  releaseAll(): void {
    const turns = [...this.#turns.values()];
    this.#turns.clear();
    for (const { queue, probes } of turns) {
      reportTo(probes, false);
      for (const waiter of queue?.all() ?? []) waiter.enter();
    }
  }

  /** Notes what the caller in front does now. */
  setStage(key: string, stage: Stage): void {
    const turn = this.#turns.get(key);
    if (!turn) return;
    turn.stage = stage;
    if (stage !== 'trying') reportTo(turn.probes, true);
  }

  /** Notes the lease of the holder. */
  setLease(key: string, lease: KnownLease): void {
    const turn = this.#turns.get(key);
    if (turn) turn.lease = lease;
  }

  /** How long the lease of the holder lasts if nobody renews it, in ms. Undefined when that is not known. */
  leaseLeftMs(key: string): number | undefined {
    const lease = this.#turns.get(key)?.lease;
    return lease && Math.max(0, lease.endsAt - now());
  }

  /** The token of the holder, as far as it is known. */
  holderToken(key: string): string | undefined {
    return this.#turns.get(key)?.lease?.token;
  }

  /** Counts a caller that waits in the store without a turn here. Returns what ends that. */
  startWaiting(key: string): () => void {
    this.#waitingInStore.set(key, (this.#waitingInStore.get(key) ?? 0) + 1);
    return () => {
      const left = this.#waitingInStore.get(key)! - 1;
      if (left === 0) this.#waitingInStore.delete(key);
      else this.#waitingInStore.set(key, left);
    };
  }

  /** Whether a caller of this process has the turn, and is not about to leave. */
  isTaken(key: string): boolean {
    const turn = this.#turns.get(key);
    return turn !== undefined && turn.stage !== 'leaving';
  }

  /** Whether the store has not answered the caller in front yet. */
  isTrying(key: string): boolean {
    return this.#turns.get(key)?.stage === 'trying';
  }

  /** Whether a caller of this process has the lock. */
  isInside(key: string): boolean {
    return this.#turns.get(key)?.stage === 'inside';
  }

  /** Lists the callers that wait for their turns, key by key. */
  *waiting(): Iterable<WaitingCall> {
    for (const [key, { queue }] of this.#turns) {
      for (const { request, startedAt } of queue?.all() ?? []) yield { key, request, startedAt };
    }
  }

  /** How many callers of this process wait for the key. */
  waiterCount(key: string): number {
    const turn = this.#turns.get(key);
    return (turn?.queue?.size ?? 0) + (turn?.stage === 'waiting' ? 1 : 0) + (this.#waitingInStore.get(key) ?? 0);
  }
}

/**
 * Returns the first waiter. Fails those before it whose signals have aborted: a listener of a signal can give the turn
 * on before the wait itself hears of the signal.
 */
function firstWaiter<HandedOff>(turn: Turn<HandedOff> | undefined): Waiter<HandedOff> | undefined {
  for (;;) {
    const first = turn?.queue?.first;
    const aborted = first?.signals.find((signal) => signal.aborted);
    if (!first || !aborted) return first;
    first.fail(aborted.reason);
  }
}

function reportTo(probes: LinkedQueue<Probe> | undefined, isAnswered: boolean): void {
  for (const probe of probes?.all() ?? []) probe.report(isAnswered);
}
