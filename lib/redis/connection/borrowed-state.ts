import type { Redis } from 'ioredis';

/** What ioredis knows of its connection, in versions 5 and 6, but does not tell in its types. */
interface Conditioned {
  readonly condition?: { readonly select?: number | string } | null;
}

/** The database that a client is in; before it connects, that of its options. */
export function databaseOf(redis: Redis): number {
  return Number((redis as Conditioned).condition?.select ?? redis.options.db ?? 0);
}

/** Looks whether the app has changed the state of a client that it has lent us, so that locks would go elsewhere or nowhere. */
export class BorrowedState {
  readonly #redis: Redis;
  /** Where the locks live: where the client was at our first command, when what the app does as it connects has been done. */
  #database: number | undefined;
  readonly #tell: (problem: string) => void;
  #isTold = false;

  /** @param tell told of the first problem: an app that switches back and forth would fill the log */
  constructor(redis: Redis, tell: (problem: string) => void) {
    this.#redis = redis;
    this.#tell = tell;
  }

  /** Why no command may be sent now, and what to do about it. */
  get problem(): string | undefined {
    const problem = this.#look();
    if (problem && !this.#isTold) {
      this.#isTold = true;
      this.#tell(problem);
    }
    return problem;
  }

  #look(): string | undefined {
    const database = databaseOf(this.#redis);
    this.#database ??= database;
    if (database !== this.#database) {
      return `the app has switched its client to database ${database}, but its locks live in database ${this.#database}. ${ADVICE}`;
    }
    const { mode } = this.#redis;
    return mode === 'normal' ? undefined : `the app has put its client into ${mode} mode. ${ADVICE}`;
  }
}

const ADVICE =
  'Calls fail until it is switched back: give "connection" a client that nothing else uses, such as client.duplicate().';
