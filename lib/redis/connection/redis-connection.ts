import type { Redis } from 'ioredis';
import { now } from '../../clock/deadline.js';
import { atRoot } from '../../clock/root-context.js';
import type { LockUnavailableError } from '../../errors/lock-unavailable.error.js';
import { storeOutage } from '../../errors/store-outage.js';
import { PUBLISH } from '../lua/publish.script.js';
import { BorrowedState, databaseOf } from './borrowed-state.js';
import { CircuitBreaker } from './circuit-breaker.js';
import { Connection, type ConnectionListener } from './connection.js';
import { mayBeOfItsKeys, notAsked, notDone, noReplyOf, type RefusedError } from './connection-errors.js';
import { isNoise, type ConnectionFailure } from './connection-noise.js';
import type { OutageLog } from './outage-log.js';
import { PlainCall, type Call } from './plain-call.js';
import { Probe } from './probe.js';
import { ReconnectOnEnd } from './reconnect-on-end.js';
import { LONGEST_CONNECT_MS } from './client-defaults.js';
import { besides } from './further-client.js';
import type { RedisClient } from './redis-client.js';
import { diagnosis, silence, withoutCommand } from './redis-diagnosis.js';
import { ScriptCommand } from './script-command.js';
import { SecondOpinion } from './second-opinion.js';
import { UNHEARD } from './sentinel-failovers.js';

/** Runs scripts on one Redis. */
export class RedisConnection extends Connection {
  readonly findsMaster: boolean;
  readonly isToOneServer = true;
  #redis!: Redis;
  readonly #listener: ConnectionListener;
  readonly #breaker: CircuitBreaker;
  readonly #log: OutageLog;
  /** The client that the app lends, until the app closes it. */
  #lent: RedisClient | undefined;
  /** Of the client that the app lends. */
  #state: BorrowedState | undefined;
  /** Of that client, too. */
  readonly #secondOpinion: SecondOpinion<Redis>;
  /** Of a client of ours. */
  #reconnect: ReconnectOnEnd | undefined;
  #isClosed = false;
  #epoch = 0;
  /** When the last attempt to connect began, and when the connection was last made. */
  #connectingAt = 0;
  #connectedAt = 0;
  /** Whether this connection is being replaced by another. */
  #isCutOff = false;
  /** When the server last gave a sign of life: the connection became ready, or a reply arrived. */
  #heardAt = 0;
  /** When the last reply came that was in time. */
  #answeredAt = 0;
  readonly #probe: Probe;
  /** Whether the server did not choose the database: the client would go on in database 0 all the same. */
  #isElsewhere = false;

  constructor(client: RedisClient, commandTimeoutMs: number, log: OutageLog, listener: ConnectionListener) {
    super(commandTimeoutMs);
    this.#probe = new Probe(commandTimeoutMs, listener, () => this.#replace());
    this.#secondOpinion = new SecondOpinion(commandTimeoutMs);
    const { sentinels, role } = client.redis.options;
    this.findsMaster = Boolean(sentinels) && role !== 'slave';
    this.#log = log;
    this.#listener = listener;
    this.#breaker = new CircuitBreaker({
      down: (cause) => log.down(this.server, cause),
      up: () => log.up(this.server),
    });
    this.#use(client);
  }

  get server(): string {
    const { host, port, path, sentinels, name } = this.#redis.options;
    return sentinels ? `master "${name}" behind Sentinel` : (path ?? `${host}:${port}`);
  }

  get database(): number {
    return this.#state ? this.#state.database : databaseOf(this.#redis);
  }

  get epoch(): number {
    return this.#epoch;
  }

  /** While the circuit is open, only one call at a time is sent, as a probe. */
  override get isDown(): boolean {
    return this.#breaker.isOpen && !this.isIdle;
  }

  /** A client that the app lends is connected by the app, or by the first call. */
  open(): void {
    return this.#state ? this.#state.start() : this.#connect();
  }

  publish(channel: string, message: string): Promise<number> {
    return this.run(PUBLISH, [], [channel, message]);
  }

  /** Sends a call. While the circuit is open, it fails at once, unless it is the only one: then it is the probe. */
  override send(call: Call): void {
    if (this.isDown)
      return this.fail(call, this.#unreachable('calls get no reply; another call is probing it now', call));
    super.send(call);
  }

  close(): void {
    this.#isClosed = true;
    this.#secondOpinion.close();
    this.#probe.drop();
    this.#leave();
    for (const call of this.inFlight.clear()) this.#failClosed(call);
    // An error that the end of a half-made connection causes is no trouble.
    if (!this.#lent) this.#redis.on('error', () => undefined).disconnect();
  }

  /** What a client sends again by itself, before the server has chosen the database, counts for nothing. @internal */
  override replied(call: Call, reply: unknown): void {
    if (!call.settled && this.#state?.sendsAgainElsewhere) return this.write(call);
    super.replied(call, reply);
  }

  /** An error of the server is a reply, too. @internal */
  override failed(call: Call, error: Error): void {
    if (error.name === 'ReplyError') this.noteReply(call);
    super.failed(call, error);
  }

  override refused(error: Error): RefusedError {
    const refused = super.refused(error);
    return mayBeOfItsKeys(refused) ? refused : storeOutage(refused);
  }

  protected get late(): LockUnavailableError {
    return storeOutage(this.#noReply(new Error('it replies, but slowly')));
  }

  protected write(call: Call): void {
    if (this.#redis.status !== 'ready' || this.#isElsewhere) return this.park(call);
    const problem = this.#state?.problem;
    if (problem) return this.fail(call, notAsked(call, this.server, problem));
    if (this.#state?.mustWait()) return this.park(call);
    ScriptCommand.send(this.#redis, call, this);
  }

  protected park(call: Call): void {
    if (this.#isClosed) return this.#failClosed(call);
    this.parked.add(call);
    this.#connect();
  }

  protected noteReply(call: Call): void {
    if (this.#isClosed) return;
    this.#heardAt = now();
    // A reply that comes too late shows that the server lives, but not that calls get theirs. It may also be one to the
    // "PING" that the client sends again in place of a call for which nobody waits any more.
    if (call.settled) return this.#probe.isCall(call) ? this.#probe.repliedLate() : undefined;
    // Other commands get through where scripts don't, as while writes are paused.
    if (this.#probe.isOpen && call instanceof PlainCall && !this.#probe.isCall(call)) return;
    this.#answeredAt = now();
    const isBack = this.#breaker.isOpen || this.#probe.isOpen;
    if (this.#breaker.lastError) this.#breaker.close();
    if (!isBack) return;
    this.#probe.succeeded();
    this.#listener.ready(this.#epoch > 0);
  }

  protected expire(call: Call): void {
    const isDead = this.#isDead(call);
    const isParked = this.parked.has(call);
    const lastError = this.#state?.lastError ?? this.#breaker.lastError;
    const silent = silence(this.#redis, { connectedAt: this.#connectedAt, timeoutMs: this.timeoutMs, lastError });
    const isReady = this.#redis.status === 'ready';
    // Others may have got their replies meanwhile. If all come too late, a reply that is heard shows nothing.
    const getsReplies = isReady && (this.#answeredAt >= call.startedAt || this.#probe.isPatient);
    // A call that was sent has seen a connection that was ready, and gave it no reply.
    if (isDead || isParked || (call.sent && !getsReplies)) this.#breaker.open(silent, isReady || call.sent);
    this.fail(call, isParked ? this.#unreachable(`waited ${this.timeoutMs} ms`, call) : this.#noReply(silent));
    if (isDead && !this.#isClosed) this.#replace();
  }

  /**
   * Whether the connection is dead, as a call that got no reply shows: nothing was heard since the call began, or the
   * connection does not get ready. A connection that is just being made, or just became ready, gets its time: far from
   * Redis, the calls that give up meanwhile would cut off one connection after the other.
   */
  #isDead(call: Call): boolean {
    const { status, options } = this.#redis;
    if (status === 'connect') return now() >= this.#connectedAt + (options.connectTimeout || LONGEST_CONNECT_MS);
    return status === 'ready' && this.#heardAt < call.startedAt && !this.#probe.isPatient;
  }

  #replace(): void {
    if (this.#lent) void this.#askOtherwise(this.#lent);
    else this.#cutOff();
  }

  /**
   * Reconnects: once for each connection, not for each call that it lets down, because the client keeps a record of
   * each.
   */
  #cutOff(): void {
    if (this.#isCutOff) return;
    this.#isCutOff = true;
    this.#redis.disconnect(true);
  }

  /**
   * Goes on over a connection of our own when the server replies to that, and not over the one that the app lends. The
   * app's client stays as it is.
   */
  async #askOtherwise(lent: RedisClient): Promise<void> {
    const { database } = this;
    const make = () => besides(lent, this.timeoutMs, database).redis;
    const redis = await this.#secondOpinion.ask(lent.redis, make, (further) => further);
    if (!redis) return;
    if (this.#isClosed || this.#lent !== lent) return redis.disconnect();
    this.#log.deserted(this.server);
    const stuck = [...this.inFlight].filter((call) => !this.parked.has(call));
    this.#goOnWith({ ...lent, redis, borrowed: false });
    this.#connected();
    this.#breaker.close();
    this.#becameReady();
    // Not sent again: the silent connection may still deliver them, and both replies would come.
    for (const call of stuck)
      this.fail(call, this.#unreachable('the connection is silent; another takes its place', call));
  }

  readonly #connected = (): void => {
    this.#connectedAt = now();
    this.#isCutOff = this.#isElsewhere = false;
  };

  readonly #becameReady = (): void => {
    if (this.#isElsewhere) return;
    this.#heardAt = now();
    const isWell = this.#breaker.ready();
    for (const call of this.unpark()) this.write(call);
    if (isWell) return this.#listener.ready(this.#epoch > 0);
    super.send(this.#probe.start());
  };

  /** The server has chosen the database of a client that the app lends, or has refused to. */
  readonly #chosen = (refusal?: Error): void => {
    for (const call of this.unpark())
      if (refusal) this.fail(call, storeOutage(super.refused(refusal)));
      else this.write(call);
  };

  readonly #dropped = (): void => {
    this.#epoch++;
    this.#probe.drop();
    // A client that does not resend forgets what was in flight, without a word.
    if (!this.#redis.options.autoResendUnfulfilledCommands) for (const call of this.inFlight) this.parked.add(call);
  };

  readonly #ended = (): void => {
    if (this.parked.size > 0) this.#connect();
  };

  readonly #errored = (error: ConnectionFailure): void => {
    // What follows a refused database is only that this connection ends.
    if (this.#isElsewhere || isNoise(error, this.#redis, this.#connectingAt)) return;
    this.#breaker.note(withoutCommand(error));
    if (error.command?.name !== 'select') return;
    this.#isElsewhere = true;
    this.#redis.disconnect(true);
  };

  readonly #unfit = (problem: string): void => this.#log.unfit(this.server, problem);

  readonly #onEvent = {
    connecting: () => void (this.#connectingAt = now()),
    connect: this.#connected,
    ready: this.#becameReady,
    close: this.#dropped,
    end: this.#ended,
    [UNHEARD]: this.#unfit,
  };

  #use(client: RedisClient): void {
    const { redis, borrowed } = client;
    this.#redis = redis;
    for (const [event, heard] of Object.entries(this.#onEvent)) redis.on(event, heard);
    if (borrowed) {
      // The app itself listens to the errors of a client that it lends.
      this.#lent = client;
      this.#state = new BorrowedState(redis, { unfit: this.#unfit, chosen: this.#chosen });
    } else {
      redis.on('error', this.#errored);
      this.#reconnect = new ReconnectOnEnd(redis);
    }
  }

  #leave(): void {
    for (const [event, heard] of Object.entries(this.#onEvent)) this.#redis.off(event, heard);
    this.#redis.off('error', this.#errored);
    this.#reconnect?.stop();
    this.#state?.stop();
  }

  #goOnWith(own: RedisClient): void {
    this.#leave();
    // The other client may have ended before it said that its connection has.
    this.#epoch++;
    this.#probe.drop();
    this.#lent = undefined;
    this.#state = undefined;
    this.#use(own);
  }

  #connect(): void {
    // Apps close the client that they lend when they shut down, mostly before the last locks are released.
    if (this.#lent && this.#state?.isClosed) this.#goOnWith(besides(this.#lent, this.timeoutMs, this.database));
    if (this.#redis.status === 'wait') atRoot(() => this.#redis.connect()).catch(() => undefined);
  }

  #failClosed(call: Call): void {
    this.fail(call, this.#unreachable('the connection has been closed', call));
  }

  #unreachable(why: string, call: Call): LockUnavailableError {
    const { lastError } = this.#breaker;
    const message = `Redis at ${this.server} can't be reached (${why})${lastError ? `: ${diagnosis(lastError)}` : '.'}`;
    return notDone(call, message, lastError ?? new Error(why));
  }

  #noReply(cause: Error): LockUnavailableError {
    return noReplyOf(this.server, this.timeoutMs, cause);
  }
}
