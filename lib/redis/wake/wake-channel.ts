import type { Redis } from 'ioredis';
import { now } from '../../clock/deadline.js';
import { atRoot } from '../../clock/root-context.js';
import { waitFor } from '../../clock/wait-for.js';
import { PATIENCE_MS } from './holder-queries.js';
import { ReconnectOnEnd } from '../connection/reconnect-on-end.js';
import { withoutCommand } from '../connection/redis-diagnosis.js';

/** How long to wait before the next attempt to subscribe after Redis refused one, in ms. */
const TRY_AGAIN_MS = 5_000;

/** What a process publishes on its own channel to learn whether messages still reach it. */
const ECHO = 'echo';

/** How often to do so at most, and how long the echo may take, in ms. */
const ECHO_EVERY_MS = 5_000;
const ECHO_WITHIN_MS = 1_000;

/** How long the first connection may take until the channel counts as down, in ms. */
const LATE_MS = 2_000;

/** Publishes a message where locks are released, and resolves with how many subscribers there are on that server. */
type Publish = (channel: string, message: string) => Promise<number>;

/** Receives the messages and the state of the channel. */
interface WakeListener {
  message(text: string): void;
  /** The channel works from now on (`reconnected`: after it was down). Messages from before were missed. */
  up(reconnected: boolean): void;
  /** The channel is down. Called once, until it is up again. */
  down(cause: Error | undefined): void;
}

/**
 * Receives the wake messages of this process: one subscription, on a connection of its own, for all waiters.
 */
export class WakeChannel {
  readonly #connect: () => Redis | undefined;
  readonly #publish: Publish;
  readonly #listener: WakeListener;
  readonly #names: string[] = [];
  #redis: Redis | undefined;
  #reconnect: ReconnectOnEnd | undefined;
  #state: 'new' | 'up' | 'down' = 'new';
  #timer: NodeJS.Timeout | undefined;
  /** When the last echo was asked for, and when one was heard, or the channel came up. */
  #askedAt = -Infinity;
  #heardAt = 0;
  #echoTimer: NodeJS.Timeout | undefined;
  #lastError: Error | undefined;
  #isClosed = false;
  #settle: () => void = () => undefined;
  readonly #settled = new Promise<void>((resolve) => (this.#settle = resolve));

  /** @param connect makes the connection to listen on; returns undefined while no server is known */
  constructor(connect: () => Redis | undefined, publish: Publish, listener: WakeListener) {
    this.#connect = connect;
    this.#publish = publish;
    this.#listener = listener;
  }

  get state(): 'new' | 'up' | 'down' {
    return this.#state;
  }

  /** Adds the name of a channel to subscribe to. */
  name(name: string): void {
    this.#names.push(name);
    if (this.#state === 'up') void this.#subscribe();
  }

  /** Connects and subscribes, unless that has begun. Resolves when the channel is up, or known to be down. */
  open(): Promise<void> {
    if (this.#redis || this.#isClosed) return this.#settled;
    const redis = (this.#redis = this.#connect());
    if (!redis) return Promise.resolve();
    this.#reconnect = new ReconnectOnEnd(redis);
    redis.on('ready', () => void this.#subscribe());
    redis.on('close', () => this.#down(this.#lastError));
    redis.on('error', (error: Error) => (this.#lastError = withoutCommand(error)));
    redis.on('message', (_name: string, text: string) => {
      if (text === ECHO) this.#heardAt = now();
      else this.#listener.message(text);
    });
    redis.connect().catch(() => undefined);
    // It may neither connect nor fail, as behind Sentinels that are gone.
    this.#timer = atRoot(() => setTimeout(() => this.#down(this.#lastError), LATE_MS).unref());
    return this.#settled;
  }

  /** Does the same, but lets its caller wait for `PATIENCE_MS` at most. */
  opened(): Promise<void> {
    return waitFor<void>(
      now() + PATIENCE_MS,
      [],
      (done) => void this.open().then(done),
      () => undefined,
    );
  }

  /**
   * Checks the connection, because a message seems to be lost or the server may be another one: if the server is
   * silent, or is not one that messages reach, the client reconnects.
   */
  checkAlive(): void {
    if (this.#state !== 'up') return;
    atRoot(() => this.#redis?.ping())?.catch(() => undefined);
    if (now() < this.#askedAt + ECHO_EVERY_MS) return;
    this.#askedAt = now();
    atRoot(() => this.#publish(this.#names[0]!, ECHO)).then(this.#expectEcho, () => undefined);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#echoTimer);
    this.#reconnect?.stop();
    this.#redis?.removeAllListeners().on('error', () => undefined);
    this.#redis?.disconnect();
    this.#settle();
  }

  async #subscribe(): Promise<void> {
    clearTimeout(this.#timer);
    try {
      await this.#redis!.subscribe(...this.#names);
      const reconnected = this.#state === 'down';
      this.#state = 'up';
      this.#heardAt = now();
      this.#lastError = undefined;
      this.#listener.up(reconnected);
    } catch (error) {
      if (this.#isClosed) return;
      this.#down(error as Error);
      this.#timer = atRoot(() => setTimeout(() => void this.#subscribe(), TRY_AGAIN_MS).unref());
    }
    this.#settle();
  }

  /**
   * Reconnects unless the echo is heard. The server that the connection was made to may be a replica by now, behind the
   * same name as the next master, or may have left its cluster: it replies, but no message of a lock comes that way.
   */
  readonly #expectEcho = (subscribers: number): void => {
    if (subscribers === 0) return this.#reconnectIfDeaf(Infinity);
    // Timers run before sockets are read: after a stall of the process, the echo may be there already.
    const look = () => setImmediate(() => this.#reconnectIfDeaf(this.#askedAt));
    this.#echoTimer = atRoot(() => setTimeout(look, ECHO_WITHIN_MS).unref());
  };

  #reconnectIfDeaf(sinceMs: number): void {
    if (this.#state === 'up' && !this.#isClosed && this.#heardAt < sinceMs) this.#redis?.disconnect(true);
  }

  #down(cause: Error | undefined): void {
    if (this.#state === 'down') return;
    this.#state = 'down';
    this.#listener.down(cause);
    this.#settle();
  }
}
