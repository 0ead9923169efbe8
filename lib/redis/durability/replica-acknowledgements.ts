import { now } from '../../clock/deadline.js';
import type { Connection } from '../connection/connection.js';

/** When a grant counts. */
export interface DurabilityTerms {
  /** How many replicas must have it. */
  readonly replicas: number;
  /** How long to wait for them, in ms. */
  readonly timeoutMs: number;
  /** Whether the master and the replicas must have it on disk, in their append-only files. */
  readonly aof: boolean;
}

/** Which servers have what was written. */
export interface Acknowledgements {
  /** Whether the master has it where it must: on its disk, if that is asked for. */
  readonly master: boolean;
  readonly replicas: number;
}

/**
 * Asks how many replicas have all that was written on one connection (`WAIT`, `WAITAOF`), one question at a time.
 *
 * A caller whose write is replied to while a question is in flight shares its answer: a connection replies in order,
 * so that write came before the question. This holds within one connection: callers make sure that it has not
 * dropped.
 */
export class ReplicaAcknowledgements {
  readonly #redis: Connection;
  readonly #terms: DurabilityTerms;
  #inFlight: Promise<unknown> | undefined;
  #last: Acknowledgements = { master: true, replicas: 0 };
  #lastAt = -Infinity;

  constructor(redis: Connection, terms: DurabilityTerms) {
    this.#redis = redis;
    this.#terms = terms;
  }

  /** @throws LockUnavailableError when the server can't be asked */
  async ask(): Promise<Acknowledgements> {
    const { aof } = this.#terms;
    const answer = await (this.#inFlight ??= this.#send());
    const [master, others] = aof ? (answer as [number, number]) : [1, answer];
    this.#lastAt = now();
    return (this.#last = { master: Number(master) === 1, replicas: Number(others) });
  }

  /** Returns the last answer, if it came after that time. */
  since(time: number): Acknowledgements | undefined {
    return this.#lastAt >= time ? this.#last : undefined;
  }

  #send(): Promise<unknown> {
    const { replicas, timeoutMs, aof } = this.#terms;
    const answer = aof
      ? this.#redis.command('WAITAOF', 1, replicas, timeoutMs)
      : this.#redis.command('WAIT', replicas, timeoutMs);
    // This runs before any caller continues: a write that is replied to after the answer is not covered by it.
    const over = () => (this.#inFlight = undefined);
    answer.then(over, over);
    return answer;
  }
}
