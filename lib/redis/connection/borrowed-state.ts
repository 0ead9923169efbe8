import type { Redis } from 'ioredis';

/** What ioredis 5 and 6 know of their connection, but leave out of their types. */
interface Conditioned {
  readonly condition?: { readonly select?: number | string } | null;
}

/** Returns the database that a client uses; before it connects, that of its options. */
export function databaseOf(redis: Redis): number {
  return Number((redis as Conditioned).condition?.select ?? redis.options.db ?? 0);
}

/**
 * Notices when the app changes the state of a client that it has lent us, so that locks would go elsewhere or
 * nowhere.
 */
export class BorrowedState {
  readonly #redis: Redis;
  /** Where the locks live: the database at our first command, when the app has done what it does as it connects. */
  #database: number | undefined;
  readonly #report: (problem: string) => void;
  #isReported = false;

  /** @param report called for the first problem only: an app that switches back and forth would fill the log */
  constructor(redis: Redis, report: (problem: string) => void) {
    this.#redis = redis;
    this.#report = report;
  }

  /** The database where the locks live. */
  get database(): number {
    return this.#database ?? databaseOf(this.#redis);
  }

  /** Says why no command may be sent now, and what to do about it; undefined when one may. */
  get problem(): string | undefined {
    const problem = this.#findProblem();
    if (problem && !this.#isReported) {
      this.#isReported = true;
      this.#report(problem);
    }
    return problem;
  }

  #findProblem(): string | undefined {
    const database = databaseOf(this.#redis);
    this.#database ??= database;
    if (database !== this.#database) {
      return (
        `the app has switched its client to database ${database}, ` +
        `but its locks live in database ${this.#database}. ${ADVICE}`
      );
    }
    const { mode } = this.#redis;
    return mode === 'normal' ? undefined : `the app has put its client into ${mode} mode. ${ADVICE}`;
  }
}

const ADVICE =
  'Calls fail until it is switched back: give "connection" a client that nothing else uses, ' +
  'such as client.duplicate().';
