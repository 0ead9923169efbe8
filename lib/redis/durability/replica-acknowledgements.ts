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

/** Who has what was written. */
export interface Acknowledgements {
  /** Whether the master has it where it must: on its disk, if that is asked for. */
  readonly master: boolean;
  readonly replicas: number;
}

/**
 * Asks the replicas whether they have all that was written on one connection (`WAIT`, `WAITAOF`), one question at a time.
 *
 * Who wrote something, and had its answer while the question is under way, shares the answer: commands of one connection are answered in
 * their order, so that write came before the question. That holds for one connection: whoever asks makes sure that it has not dropped.
 */
export class ReplicaAcknowledgements {
  readonly #redis: Connection;
  readonly #terms: DurabilityTerms;
  #underWay: Promise<unknown> | undefined;

  constructor(redis: Connection, terms: DurabilityTerms) {
    this.#redis = redis;
    this.#terms = terms;
  }

  /** @throws LockUnavailableError when the server can't be asked */
  async ask(): Promise<Acknowledgements> {
    const { aof } = this.#terms;
    const answer = await (this.#underWay ??= this.#send());
    if (!aof) return { master: true, replicas: Number(answer) };
    const [master, others] = answer as [number, number];
    return { master: Number(master) === 1, replicas: Number(others) };
  }

  #send(): Promise<unknown> {
    const { replicas, timeoutMs, aof } = this.#terms;
    const answer = aof
      ? this.#redis.command('WAITAOF', 1, replicas, timeoutMs)
      : this.#redis.command('WAIT', replicas, timeoutMs);
    // Before anybody else hears of it: what is answered after it was not asked about.
    const over = () => (this.#underWay = undefined);
    answer.then(over, over);
    return answer;
  }
}
