import type { Redis } from 'ioredis';
import { now } from '../../clock/deadline.js';
import { atRoot } from '../../clock/root-context.js';
import { waitFor } from '../../clock/wait-for.js';
import { EchoCheck, type Publish } from './echo-check.js';
import { PATIENCE_MS } from './holder-queries.js';
import { ReconnectOnEnd } from '../connection/reconnect-on-end.js';
import { withoutCommand } from '../connection/redis-diagnosis.js';

/** How long to wait before the next attempt to subscribe after Redis refused one, in ms. */
const TRY_AGAIN_MS = 5_000;

/** How long the first connection may take until the channel counts as down, in ms. */
const LATE_MS = 2_000;

/** Receives the messages and the state of the channel. */
interface WakeListener {
  message(text: string): void;
  /** The channel works from now on (`reconnected`: after it was down). Messages from before were missed. */
  up(reconnected: boolean): void;
  /** The channel is down. Called once, until it is up again. */
  down(cause: Error | undefined): void;
  /** The server refuses to publish, so no message comes. Called once. */
  mute(error: Error): void;
}

/**
 * Receives the wake messages of this process: one subscription, on a connection of its own, for all waiters.
 */
export class WakeChannel {
  readonly #connect: () => Redis | undefined;
  readonly #echo: EchoCheck;
  readonly #listener: WakeListener;
  readonly #names: string[] = [];
  #redis: Redis | undefined;
  #reconnect: ReconnectOnEnd | undefined;
  #state: 'new' | 'up' | 'down' = 'new';
  #timer: NodeJS.Timeout | undefined;
  #lastError: Error | undefined;
  #isClosed = false;
  #settle: () => void = () => undefined;
  readonly #settled = new Promise<void>((resolve) => (this.#settle = resolve));

  /** @param connect makes the connection to listen on; returns undefined while no server is known */
  constructor(connect: () => Redis | undefined, publish: Publish, listener: WakeListener) {
    this.#connect = connect;
    this.#echo = new EchoCheck(publish, {
      deaf: () => {
        if (this.#state === 'up' && !this.#isClosed) this.#redis?.disconnect(true);
      },
      mute: (error) => listener.mute(error),
    });
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
      if (!this.#echo.isEcho(text)) this.#listener.message(text);
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
   *
   * @param key in a cluster, the key whose message seems to be lost
   */
  checkAlive(key?: string): void {
    if (this.#state !== 'up') return;
    const redis = this.#redis!;
    atRoot(() => redis.ping()).catch(() => undefined);
    this.#echo.start(this.#names[0]!, redis, key);
  }

  /**
   * The same now and then: a process that no message reaches is passed over while it waits, and on a quorum it lets
   * nobody else in.
   */
  checkNowAndThen(): void {
    if (this.#echo.isDue) this.checkAlive();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#echo.stop();
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
      this.#echo.heard();
      this.#lastError = undefined;
      this.#listener.up(reconnected);
    } catch (error) {
      if (this.#isClosed) return;
      this.#down(error as Error);
      this.#timer = atRoot(() => setTimeout(() => void this.#subscribe(), TRY_AGAIN_MS).unref());
    }
    this.#settle();
  }

  #down(cause: Error | undefined): void {
    if (this.#state === 'down') return;
    this.#state = 'down';
    this.#listener.down(cause);
    this.#settle();
  }
}
