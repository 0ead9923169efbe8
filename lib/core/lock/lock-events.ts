import { AsyncLocalStorage } from 'node:async_hooks';
import { now } from '../../clock/deadline.js';
import { LockKeyError } from '../../errors/lock-key.error.js';
import { LockOptionsError } from '../../errors/lock-options.error.js';
import type { LockEvent, LockCallEvent } from './lock-event.js';
import { changedRequest, type LockRequest, type Refusal } from '../request/lock-request.js';
import { Lock } from './lock.js';

/** Who hears of what happens to locks. */
export interface EventListener {
  next(event: LockEvent): void;
  complete(): void;
}

/** A listener, and what it is to be told with. */
interface Subscription {
  /** Later ones have larger numbers. */
  readonly number: number;
  /** Runs something in the async context of who subscribed: what is told happens in that of anybody. */
  readonly inContext: ReturnType<typeof AsyncLocalStorage.snapshot>;
}

/** Tells what happens to the locks of a service. Where nobody listens, no event is made. */
export class LockEvents {
  readonly #listeners = new Map<EventListener, Subscription>();
  #latest = 0;
  #isComplete = false;

  get isHeard(): boolean {
    return this.#listeners.size > 0;
  }

  add(listener: EventListener): void {
    if (this.#isComplete) listener.complete();
    else this.#listeners.set(listener, { number: ++this.#latest, inContext: AsyncLocalStorage.snapshot() });
  }

  delete(listener: EventListener): void {
    this.#listeners.delete(listener);
  }

  /** Tells all, or those who came no later than that one. */
  tell(event: LockEvent, latest = Infinity): void {
    for (const [listener, { number, inContext }] of [...this.#listeners])
      if (number <= latest) inContext(() => listener.next(event));
  }

  /** There will be no more. */
  complete(): void {
    this.#isComplete = true;
    for (const [listener, { inContext }] of [...this.#listeners]) inContext(() => listener.complete());
  }

  /** Tells how a call for a lock goes. */
  async follow(request: LockRequest, take: (request: LockRequest) => Promise<Lock | Refusal>): Promise<Lock | Refusal> {
    const startedAt = now();
    let hasWaited = false;
    // A signal may be there only once.
    const signals: AbortSignal[] = [];
    const waitSignals = (): readonly AbortSignal[] => {
      const asked = request.waitSignals();
      signals.push(...asked);
      return asked;
    };
    const ended = (outcome: (call: LockCallEvent) => LockEvent | undefined): void => {
      const call = { keys: request.keys, label: request.label, waitedMs: now() - startedAt };
      const event = outcome(call);
      if (hasWaited) this.tell({ ...call, type: 'waited' });
      if (event) this.tell(event);
    };
    let answer: Lock | Refusal;
    try {
      answer = await take(changedRequest(request, { waitSignals, onWait: () => void (hasWaited = true) }));
    } catch (error) {
      const isAborted = [request.signal, ...signals].some((signal) => signal?.aborted && signal.reason === error);
      ended((call) =>
        isAborted
          ? { ...call, type: 'aborted', reason: error }
          : isWrong(error)
            ? undefined
            : { ...call, type: 'unavailable', error },
      );
      throw error;
    }
    if (answer instanceof Lock) {
      const { fence, nesting } = answer;
      const latest = this.#latest;
      ended((call) => ({ ...call, type: 'acquired', fence, nested: nesting !== undefined }));
      answer.announce(latest);
    } else {
      const { reason, waitMs, holder, ahead } = answer;
      ended((call) => ({ ...call, type: 'timeout', reason, waitMs, holder, ahead }));
    }
    return answer;
  }
}

/** Whether it is about the call itself. */
const isWrong = (error: unknown): boolean => error instanceof LockOptionsError || error instanceof LockKeyError;
