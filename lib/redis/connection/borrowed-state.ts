import type { Redis } from 'ioredis';
import { atRoot } from '../../clock/root-context.js';
import { willReconnect, withoutCommand } from './redis-diagnosis.js';

/** What ioredis 5 and 6 know of their connection, but leave out of their types. */
interface Conditioned {
  readonly condition?: { readonly select?: number | string } | null;
}

/** Returns the database that a client uses; before it connects, that of its options. */
export function databaseOf(redis: Redis): number {
  return Number((redis as Conditioned).condition?.select ?? redis.options.db ?? 0);
}

interface BorrowedListener {
  /** Called for the first problem only: an app that switches back and forth would fill the log. */
  unfit(problem: string): void;
  /** The server has chosen the database, or has refused to; or it is to be asked again. */
  chosen(refusal?: Error): void;
}

/**
 * Notices when the state of a client that the app has lent us is not what it must be, so that locks would go elsewhere
 * or nowhere: because the app changes it, or because the server refused the database. ioredis takes that for chosen
 * when it asks, and goes on in database 0.
 */
export class BorrowedState {
  readonly #redis: Redis;
  /**
   * Where the locks live: in the database of the client when the module starts, or at our first command before. If the
   * client connects later, the app may choose another one until then.
   */
  #database: number | undefined;
  #hasStarted = false;
  readonly #listener: BorrowedListener;
  #isReported = false;
  /**
   * Whether this connection is known to be in the database of the client; if not, since it was made, or since the app
   * has switched it. A new one is in database 0.
   */
  #place!: 'known' | 'new' | 'switched';
  /** Identifies the question for the database, on this connection. */
  #asked: object | undefined;
  #lastError: Error | undefined;

  constructor(redis: Redis, listener: BorrowedListener) {
    this.#redis = redis;
    this.#listener = listener;
    this.#dropped();
    redis.on('ready', this.#ready);
    redis.on('close', this.#dropped);
    redis.on('select', this.#switched);
    // ioredis prints the errors to which nobody listens: it is to go on with that.
    if (redis.listenerCount('error') > 0) redis.on('error', this.#errored);
  }

  /** Why the client is not ready, if the app listens to its errors, too; undefined while it is. */
  get lastError(): Error | undefined {
    return this.#lastError;
  }

  /** Whether the app has closed its client. While that waits to connect again, ioredis only calls the attempt off. */
  get isClosed(): boolean {
    const { status } = this.#redis;
    return status === 'end' || (status === 'reconnecting' && !willReconnect(this.#redis));
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
      this.#listener.unfit(problem);
    }
    return problem;
  }

  /**
   * Whether a reply on this connection is to a command that the client sent again by itself, maybe in another database.
   */
  get sendsAgainElsewhere(): boolean {
    return this.#place === 'new';
  }

  /**
   * Whether a command must wait until the server has chosen the database on this connection. Then it asks for that, and
   * `chosen` tells the reply, unless the connection drops before.
   */
  mustWait(): boolean {
    const isKnown = this.#place === 'known';
    if (!isKnown && !this.#asked) this.#choose();
    return !isKnown;
  }

  /** Notes that the module starts. */
  start(): void {
    this.#hasStarted = true;
    if (this.#redis.status === 'ready') this.#findDatabase();
  }

  /** Lets go of the client. */
  stop(): void {
    this.#asked = undefined;
    this.#redis.off('ready', this.#ready);
    this.#redis.off('close', this.#dropped);
    this.#redis.off('select', this.#switched);
    this.#redis.off('error', this.#errored);
  }

  #choose(): void {
    const asked = (this.#asked = {});
    const settled = (error?: Error) => {
      const isReply = !error || error.name === 'ReplyError';
      const isOutdated = this.#asked !== asked;
      if (!isOutdated) this.#asked = undefined;
      // The app has switched its client since, or its time-out for a command is over.
      if (isOutdated || !isReply) return void setImmediate(() => this.#listener.chosen());
      if (!error) this.#place = 'known';
      this.#listener.chosen(error);
    };
    atRoot(() => this.#redis.select(this.database)).then(() => settled(), settled);
  }

  readonly #ready = (): void => {
    this.#lastError = undefined;
    if (this.#hasStarted) this.#findDatabase();
  };

  readonly #errored = (error: Error): void => {
    if (this.#redis.status !== 'ready') this.#lastError = withoutCommand(error);
  };

  readonly #dropped = (): void => {
    this.#asked = undefined;
    // If it drops again in the handshake, the client knows only the database of its options.
    const databases = [this.database, databaseOf(this.#redis), this.#redis.options.db];
    this.#place = databases.some(Boolean) ? 'new' : 'known';
  };

  /** ioredis says so before the server has replied. */
  readonly #switched = (database: number): void => {
    if (database === this.#database) return;
    this.#asked = undefined;
    if (this.#place === 'known') this.#place = 'switched';
  };

  #findDatabase(): number {
    return (this.#database ??= databaseOf(this.#redis));
  }

  #findProblem(): string | undefined {
    const database = databaseOf(this.#redis);
    const ofLocks = this.#findDatabase();
    if (database !== ofLocks) {
      return (
        `the app has switched its client to database ${database}, ` +
        `but its locks live in database ${ofLocks}. ${ADVICE}`
      );
    }
    const { mode } = this.#redis;
    return mode === 'normal' ? undefined : `the app has put its client into ${mode} mode. ${ADVICE}`;
  }
}

const ADVICE =
  'Calls fail until it is switched back: give "connection" a client that nothing else uses, ' +
  'such as client.duplicate().';
