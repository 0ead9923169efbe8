import type { Redis } from 'ioredis';
import { now } from '../../clock/deadline.js';
import { LockUnavailableError } from '../../errors/lock-unavailable.error.js';
import { BorrowedState } from './borrowed-state.js';
import { InFlight } from './in-flight.js';
import type { LuaScript } from '../lua/lua-script.js';
import type { RedisClient } from './redis-client.js';
import { bulks } from '../wire/resp.js';
import { PUBLISH } from '../lua/publish.script.js';
import { PlainCall, type Call } from './plain-call.js';
import { ReconnectOnEnd } from './reconnect-on-end.js';
import { AwaitedCall } from './script-call.js';
import { ScriptCommand } from './script-command.js';
import { diagnosis, saidBy, silence, withoutCommand } from './redis-diagnosis.js';

/** The command never left this process, so it can't have changed anything. */
export class NotSentError extends LockUnavailableError {}

/** The server answered, and said no. */
export class RefusedError extends LockUnavailableError {
  /** Its own words. */
  readonly reply: string;

  constructor(message: string, cause: Error) {
    super(message, cause);
    this.reply = saidBy(cause);
  }
}

/** Hears about outages: once when one begins, once when it is over. */
export interface OutageLog {
  down(server: string, cause: Error): void;
  up(server: string): void;
  /** The subscription that wakes those who wait is gone; they ask every second meanwhile. */
  unsubscribed(server: string, cause: Error | undefined): void;
  /** It is there again. */
  subscribed(server: string): void;
  /** The server can be reached, but should not keep locks. */
  unfit(server: string, problem: string): void;
}

/** For a connection whose outages another one tells of. */
export const SILENT: OutageLog = {
  down: () => undefined,
  up: () => undefined,
  unsubscribed: () => undefined,
  subscribed: () => undefined,
  unfit: () => undefined,
};

/** What runs scripts: on one Redis, or on a cluster. */
export type Connection = Pick<
  RedisConnection,
  'epoch' | 'isIdle' | 'open' | 'run' | 'command' | 'publish' | 'send' | 'close' | 'server' | 'findsMaster' | 'refused'
>;

/**
 * Runs scripts on one Redis. A call settles within the command time-out; when the connection drops meanwhile, it is sent again
 * as soon as there is a new one: every script of ours may run twice.
 */
export class RedisConnection {
  /** Whether the client looks for the master by itself. */
  readonly findsMaster: boolean;
  readonly #redis: Redis;
  readonly #borrowed: boolean;
  readonly #timeoutMs: number;
  readonly #log: OutageLog;
  readonly #onReady: (reconnected: boolean) => void;
  readonly #inFlight: InFlight<Call>;
  /** Of a client of the app's. */
  readonly #state: BorrowedState | undefined;
  /** Of a client of ours, until it is closed. */
  #reconnect: ReconnectOnEnd | undefined;
  /** Calls that wait for a connection. */
  readonly #parked = new Set<Call>();
  /** What is wrong, while something is. */
  #trouble: Error | undefined;
  /** Set when a call got no answer, until one comes: calls fail at once then, but for one at a time that tries. */
  #isDown = false;
  #drops = 0;
  #connectedAt = 0;
  /** Whether this connection is to be followed by another. */
  #isCutOff = false;
  #repliedAt = 0;

  constructor(
    { redis, borrowed }: RedisClient,
    commandTimeoutMs: number,
    log: OutageLog,
    onReady: (reconnected: boolean) => void,
  ) {
    this.findsMaster = Boolean(redis.options.sentinels) && redis.options.role !== 'slave';
    this.#redis = redis;
    this.#borrowed = borrowed;
    this.#timeoutMs = commandTimeoutMs;
    this.#log = log;
    this.#inFlight = new InFlight(commandTimeoutMs, (call) => this.#expire(call));
    this.#onReady = onReady;
    redis.on('connect', this.#connected);
    redis.on('ready', this.#becameReady);
    redis.on('close', this.#dropped);
    redis.on('end', this.#ended);
    // A borrowed client's errors are the app's own to hear.
    if (borrowed) this.#state = new BorrowedState(redis, (problem) => log.unfit(this.server, problem));
    else {
      redis.on('error', this.#failed);
      this.#reconnect = new ReconnectOnEnd(redis);
    }
  }

  /** How often the connection has dropped. If it changed while a command ran, the command may have run twice. */
  get epoch(): number {
    return this.#drops;
  }

  /** Whether nothing is under way. */
  get isIdle(): boolean {
    return this.#inFlight.size === 0;
  }

  /** Begins to connect, if nobody has. */
  open(): void {
    if (this.#redis.status === 'wait') this.#redis.connect().catch(() => undefined);
  }

  /**
   * Runs a script and decodes its reply.
   *
   * @throws NotSentError when the server did not get it, LockUnavailableError when it may have run or was refused
   */
  run<Reply>(script: LuaScript<Reply>, keys: readonly string[], args: readonly (string | number)[]): Promise<Reply> {
    const encoded = { text: bulks(keys) + bulks(args), keyCount: keys.length, count: keys.length + args.length };
    const call = new AwaitedCall(script, encoded, (error) => this.refused(error));
    this.send(call);
    return call.promise;
  }

  /**
   * Runs a command that is no script.
   *
   * @throws LockUnavailableError
   */
  command(...words: (string | number)[]): Promise<unknown> {
    const call = new PlainCall(words);
    this.send(call);
    return call.reply;
  }

  /** Says something on a channel, and answers how many heard it. */
  publish(channel: string, message: string): Promise<number> {
    return this.run(PUBLISH, [], [channel, message]);
  }

  /** Sends a call. */
  send(call: Call): void {
    if (this.#isDown && !this.isIdle)
      return call.fail(this.#unreachable('calls get no answer; another one tries it now', call));
    this.#inFlight.add(call);
    this.#write(call, false);
  }

  /** Lets go of the client: closes ours, leaves a borrowed one as it was. */
  close(): void {
    this.#redis.off('connect', this.#connected);
    this.#redis.off('ready', this.#becameReady);
    this.#redis.off('close', this.#dropped);
    this.#redis.off('end', this.#ended);
    this.#reconnect?.stop();
    this.#reconnect = undefined;
    for (const call of this.#inFlight.clear())
      this.#fail(call, this.#unreachable('the connection has been closed', call));
    // What the end of a connection that is just being made breaks is no trouble.
    if (!this.#borrowed)
      this.#redis
        .off('error', this.#failed)
        .on('error', () => undefined)
        .disconnect();
  }

  #write(call: Call, withSource: boolean): void {
    if (this.#redis.status !== 'ready') return this.#park(call);
    const problem = this.#state?.problem;
    if (problem) return this.#fail(call, notDone(call, `Redis at ${this.server} was not asked: ${problem}`));
    ScriptCommand.send(this.#redis, call, withSource, this);
  }

  /** @internal */
  replied(call: Call, reply: unknown): void {
    this.#repliedAt = now();
    if (this.#isDown) this.#recovered();
    this.#inFlight.delete(call);
    call.succeed(reply);
  }

  /** Brings the script along, waits for a new connection, or tells the caller. @internal */
  failed(call: Call, error: Error): void {
    if (call.settled) return;
    if (error.name !== 'ReplyError') this.#park(call);
    else if (error.message.startsWith('NOSCRIPT')) this.#write(call, true);
    else this.#fail(call, this.refused(error));
  }

  #park(call: Call): void {
    if (this.#redis.status === 'end' && !this.#reconnect)
      return this.#fail(call, this.#unreachable('the connection has been closed', call));
    this.#parked.add(call);
    this.open();
  }

  #expire(call: Call): void {
    const { status } = this.#redis;
    // A connection that says nothing at all while a command is under way is dead, and so is one that does not get ready.
    const isDead = status === 'connect' || (status === 'ready' && this.#repliedAt < call.startedAt);
    const isParked = this.#parked.has(call);
    const silent = silence(this.#redis, {
      connectedAt: this.#connectedAt,
      timeoutMs: this.#timeoutMs,
      lastError: this.#trouble,
    });
    if (isDead || isParked) this.#noteTrouble(silent);
    this.#isDown ||= isDead || isParked;
    this.#fail(call, isParked ? this.#unreachable(`waited ${this.#timeoutMs} ms`, call) : this.#noAnswer(silent));
    if (isDead) this.#cutOff();
  }

  /** Connects anew. Once for each connection, not for each call that it lets down: the client would take notes of each. */
  #cutOff(): void {
    if (this.#borrowed || this.#isCutOff) return;
    this.#isCutOff = true;
    this.#redis.disconnect(true);
  }

  #fail(call: Call, error: LockUnavailableError): void {
    this.#parked.delete(call);
    this.#inFlight.delete(call);
    call.fail(error);
  }

  readonly #connected = (): void => {
    this.#connectedAt = now();
    this.#isCutOff = false;
  };

  readonly #becameReady = (): void => {
    this.#recovered();
    const parked = [...this.#parked];
    this.#parked.clear();
    for (const call of parked) this.#write(call, false);
    this.#onReady(this.#drops > 0);
  };

  readonly #dropped = (): void => {
    this.#drops++;
    // Such a client forgets what was under way, without a word.
    if (!this.#redis.options.autoResendUnfulfilledCommands) for (const call of this.#inFlight) this.#parked.add(call);
  };

  readonly #ended = (): void => {
    if (this.#reconnect) return;
    for (const call of this.#parked) this.#fail(call, this.#unreachable('the connection has been closed', call));
  };

  readonly #failed = (error: Error): void => this.#noteTrouble(withoutCommand(error));

  #noteTrouble(error: Error): void {
    if (!this.#trouble) this.#log.down(this.server, error);
    // What ioredis says of its own retries says less than what the server or the network has said before.
    if (!this.#trouble || error.name !== 'MaxRetriesPerRequestError') this.#trouble = error;
  }

  #recovered(): void {
    if (this.#trouble) this.#log.up(this.server);
    this.#trouble = undefined;
    this.#isDown = false;
  }

  /** How to name the server in a message. */
  get server(): string {
    const { host, port, path, sentinels, name } = this.#redis.options;
    return sentinels ? `master "${name}" behind Sentinel` : (path ?? `${host}:${port}`);
  }

  #unreachable(why: string, call: Call): LockUnavailableError {
    const cause = this.#trouble ?? new Error(why);
    return notDone(
      call,
      `Redis at ${this.server} can't be reached (${why})${this.#trouble ? `: ${diagnosis(cause)}` : '.'}`,
      cause,
    );
  }

  #noAnswer(cause: Error): LockUnavailableError {
    return new LockUnavailableError(
      `Redis at ${this.server} did not answer within ${this.#timeoutMs} ms. Look at its load and the network, or raise "commandTimeout".`,
      cause,
    );
  }

  /** What to say when the server refuses a command. */
  refused(error: Error): RefusedError {
    return refusedBy(this.server, error);
  }
}

function notDone({ sent }: Call, message: string, cause?: Error): LockUnavailableError {
  return sent ? new LockUnavailableError(message, cause) : new NotSentError(message, cause);
}

/** What to say when this server refuses a command. */
export function refusedBy(server: string, error: Error): RefusedError {
  if (error.message.includes('WRONGTYPE')) {
    return new RefusedError(
      'The key of this lock holds something in Redis that is not a lock. Another program uses the same name: change "keyPrefix".',
      error,
    );
  }
  return new RefusedError(`Redis at ${server} did not do it: ${diagnosis(error)}`, withoutCommand(error));
}
