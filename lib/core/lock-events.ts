import { now } from '../clock/deadline.js';
import { LockKeyError } from '../errors/lock-key.error.js';
import { LockOptionsError } from '../errors/lock-options.error.js';
import type { LockEvent, OfCall } from './lock-event.js';
import type { LockRequest, Refusal } from './lock-request.js';
import { Lock } from './lock.js';

/** Who hears of what happens to locks. */
export interface EventListener {
  next(event: LockEvent): void;
  complete(): void;
}

/** Tells what happens to the locks of a service. Where nobody listens, no event is made. */
export class LockEvents {
  readonly #listeners = new Set<EventListener>();
  #isComplete = false;

  get isHeard(): boolean {
    return this.#listeners.size > 0;
  }

  add(listener: EventListener): void {
    if (this.#isComplete) listener.complete();
    else this.#listeners.add(listener);
  }

  delete(listener: EventListener): void {
    this.#listeners.delete(listener);
  }

  tell(event: LockEvent): void {
    for (const listener of this.#listeners) listener.next(event);
  }

  /** There will be no more. */
  complete(): void {
    this.#isComplete = true;
    for (const listener of this.#listeners) listener.complete();
  }

  /** Tells how a call for a lock goes. */
  async follow(request: LockRequest, take: (request: LockRequest) => Promise<Lock | Refusal>): Promise<Lock | Refusal> {
    const startedAt = now();
    let hasWaited = false;
    const ended = (outcome: (call: OfCall) => LockEvent | undefined): void => {
      const call = { keys: request.keys, label: request.label, waitedMs: now() - startedAt };
      const event = outcome(call);
      if (hasWaited) this.tell({ ...call, type: 'waited' });
      if (event) this.tell(event);
    };
    let answer: Lock | Refusal;
    try {
      answer = await take({ ...request, onWait: () => (hasWaited = true) });
    } catch (error) {
      ended((call) => failure(call, error, request));
      throw error;
    }
    if (answer instanceof Lock) {
      const { fence, nesting } = answer;
      ended((call) => ({ ...call, type: 'acquired', fence, nested: nesting !== undefined }));
      answer.announce();
    } else {
      const { reason, waitMs, holder, ahead } = answer;
      ended((call) => ({ ...call, type: 'timeout', reason, waitMs, holder, ahead }));
    }
    return answer;
  }
}

/** Undefined for a call that is wrong in itself. */
function failure(call: OfCall, error: unknown, request: LockRequest): LockEvent | undefined {
  if (request.waitSignals().some(({ aborted, reason }) => aborted && reason === error)) return { ...call, type: 'aborted', reason: error };
  return error instanceof LockOptionsError || error instanceof LockKeyError ? undefined : { ...call, type: 'unavailable', error };
}
