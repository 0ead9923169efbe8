import type { Redis } from 'ioredis';
import { afterRunning } from '../../clock/running-time.js';
import type { LockUnavailableError } from '../../errors/lock-unavailable.error.js';
import { coverageOf, storeOutage } from '../../errors/store-outage.js';
import type { LuaScript } from '../lua/lua-script.js';
import { refusedBy, RefusedError } from './connection-errors.js';
import { InFlight } from './in-flight.js';
import { PlainCall, type Call } from './plain-call.js';
import { AwaitedCall } from './script-call.js';
import type { Outcome } from './script-command.js';

/** What one of several servers replied: its reply, or an `Error` that says why there is none. */
export interface ServerReply {
  readonly server: string;
  readonly reply: unknown;
}

/** Where to publish a message in a cluster, whose nodes pass it on to each other. */
export interface PublishedOver {
  /** A key: over its node, where it is released. */
  readonly key?: string | undefined;
  /** A connection to a node: over another one, if one is well. */
  readonly besides?: Redis;
}

export interface ConnectionListener {
  /** The connection can be used (`reconnected`: again). */
  ready(reconnected: boolean): void;
  /** The server has run a script on a new connection, but its reply came too late for a call. */
  isSlow(): void;
}

/**
 * Runs scripts and commands, on one Redis or on a cluster. A call settles within the command time-out. When the
 * connection drops meanwhile, the call is sent again on the next one: every script may run twice.
 */
export abstract class Connection implements Outcome {
  /** Names the server in messages. */
  abstract readonly server: string;
  /** The number of the database that it uses. */
  abstract readonly database: number;
  /** Whether the client finds the master by itself. */
  abstract readonly findsMaster: boolean;
  /** Whether it is to one server, so that a new connection is one to all that there is. */
  abstract readonly isToOneServer: boolean;
  /**
   * Grows whenever the connection dropped. If it changed while a command ran, the command may have run twice, or on
   * another server.
   */
  abstract readonly epoch: number;
  protected readonly timeoutMs: number;
  protected readonly inFlight: InFlight<Call>;
  /** Those calls in flight that wait for a connection. */
  protected readonly parked = new Set<Call>();

  constructor(commandTimeoutMs: number) {
    this.timeoutMs = commandTimeoutMs;
    this.inFlight = new InFlight(commandTimeoutMs, (call) => this.expire(call));
  }

  /** Whether no call is in flight. */
  get isIdle(): boolean {
    return this.inFlight.size === 0;
  }

  /** Whether each call would fail at once. */
  get isDown(): boolean {
    return false;
  }

  /** Lets go of the client: closes our own, leaves a borrowed one as it was. */
  abstract close(): void;

  /**
   * Publishes a message on a channel, and returns how many subscribers got it.
   */
  abstract publish(channel: string, message: string, over?: PublishedOver): Promise<number>;

  /**
   * Runs a script and decodes its reply.
   *
   * @throws NotSentError when the server did not get it, LockUnavailableError when it may have run or was refused
   */
  run<Reply>(script: LuaScript<Reply>, keys: readonly string[], args: readonly (string | number)[]): Promise<Reply> {
    return this.start(new AwaitedCall(script, keys, args, this));
  }

  /**
   * Runs a command that is no script.
   *
   * @throws LockUnavailableError
   */
  command(...words: (string | number)[]): Promise<unknown> {
    return this.start(new PlainCall(words));
  }

  /**
   * Runs a command that is no script on each server: one, unless it is a cluster. Never rejects, and resolves within
   * the command time-out.
   */
  async commandOnAll(...words: string[]): Promise<readonly ServerReply[]> {
    const reply = await this.command(...words).catch((error: unknown) => error as Error);
    return [{ server: this.server, reply }];
  }

  /**
   * Runs work that takes several calls in a row, and settles within the command time-out of one.
   *
   * @param work gets what throws when nobody waits for its result any more: then it must undo what it did
   * @param told adds to the error of work that took too long how far it came
   * @throws LockUnavailableError
   */
  async inTime<Result>(
    work: (throwIfLate: () => void) => Promise<Result>,
    told = (late: LockUnavailableError): LockUnavailableError => late,
  ): Promise<Result> {
    let stop = () => {};
    let isLate = false;
    const late = new Promise<never>((_, reject) => {
      const end = () => {
        isLate = true;
        reject(told(this.late));
      };
      stop = afterRunning(this.timeoutMs, end);
    });
    const throwIfLate = () => {
      if (isLate) throw this.late;
    };
    try {
      return await Promise.race([work(throwIfLate), late]);
    } finally {
      stop();
    }
  }

  /** Sends a call. */
  send(call: Call): void {
    this.inFlight.add(call);
    this.write(call);
  }

  /** The error of a call that the server refused. */
  refused(error: Error): RefusedError {
    return refusedBy(this.server, error);
  }

  /** @internal */
  replied(call: Call, reply: unknown): void {
    this.noteReply(call);
    this.inFlight.delete(call);
    call.succeed(reply);
  }

  /** Sends the call with the script's source, parks it until there is a connection, or fails it. @internal */
  failed(call: Call, error: Error): void {
    if (call.settled) return;
    if (error.name !== 'ReplyError') this.park(call, error);
    else if (error.message.startsWith('NOSCRIPT')) {
      call.needsSource = true;
      this.write(call);
    } else this.fail(call, this.refused(error));
  }

  /** The error of a caller whose calls take too long. */
  protected abstract get late(): LockUnavailableError;

  protected start<Reply>(call: Call & { readonly promise: Promise<Reply> }): Promise<Reply> {
    this.send(call);
    return call.promise;
  }

  protected fail(call: Call, error: LockUnavailableError): void {
    this.parked.delete(call);
    this.inFlight.delete(call);
    // Where nothing is said of certain keys, all calls would meet the same.
    call.fail(error instanceof RefusedError || coverageOf(error) ? error : storeOutage(error));
  }

  /** Returns the calls that were parked, which are none any more. */
  protected unpark(): readonly Call[] {
    const parked = [...this.parked];
    this.parked.clear();
    return parked;
  }

  /** Writes a call to the client, or parks it. */
  protected abstract write(call: Call): void;

  /** Keeps a call until there is a connection. */
  protected abstract park(call: Call, error?: Error): void;

  /** Fails a call whose time is over. */
  protected abstract expire(call: Call): void;

  /** Notes that the server replied to a call. */
  protected abstract noteReply(call: Call): void;
}
