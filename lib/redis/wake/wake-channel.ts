import type { Redis } from 'ioredis';
import { now } from '../../clock/deadline.js';
import { atRoot } from '../../clock/root-context.js';
import { waitFor } from '../../clock/wait-for.js';
import { PATIENCE_MS } from './holder-queries.js';
import { ReconnectOnEnd } from '../connection/reconnect-on-end.js';
import { withoutCommand } from '../connection/redis-diagnosis.js';

/** How long to wait before subscribing again after Redis refused it, in ms. */
const TRY_AGAIN_MS = 5_000;

/** How long the first connection may take until it is taken for one that does not come, in ms. */
const LATE_MS = 2_000;

/** What the channel said, and what became of it. */
interface WakeListener {
  message(text: string): void;
  /** It works from now on (`reconnected`: after it was down); what was said before was missed. */
  up(reconnected: boolean): void;
  /** Told once, until it is up again. */
  down(cause: Error | undefined): void;
}

/**
 * On which Redis tells this process of the locks that it is given: one subscription, on a connection of its own, however many
 * wait.
 */
export class WakeChannel {
  readonly #connect: () => Redis | undefined;
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

  /** @param connect makes the connection to listen on; undefined while no server is known */
  constructor(connect: () => Redis | undefined, listener: WakeListener) {
    this.#connect = connect;
    this.#listener = listener;
  }

  get state(): 'new' | 'up' | 'down' {
    return this.#state;
  }

  /** Adds a name to listen for. */
  name(name: string): void {
    this.#names.push(name);
    if (this.#state === 'up') void this.#subscribe();
  }

  /** Begins to listen, if it has not begun; resolves when it works, or is known not to. */
  open(): Promise<void> {
    if (this.#redis || this.#isClosed) return this.#settled;
    const redis = (this.#redis = this.#connect());
    if (!redis) return Promise.resolve();
    this.#reconnect = new ReconnectOnEnd(redis);
    redis.on('ready', () => void this.#subscribe());
    redis.on('close', () => this.#down(this.#lastError));
    redis.on('error', (error: Error) => (this.#lastError = withoutCommand(error)));
    redis.on('message', (_name: string, text: string) => this.#listener.message(text));
    redis.connect().catch(() => undefined);
    // It may neither come nor fail, as behind Sentinels that are gone.
    this.#timer = atRoot(() => setTimeout(() => this.#down(this.#lastError), LATE_MS).unref());
    return this.#settled;
  }

  /** The same for a caller, who does not wait as long as that can take. */
  opened(): Promise<void> {
    return waitFor<void>(
      now() + PATIENCE_MS,
      [],
      (done) => void this.open().then(done),
      () => undefined,
    );
  }

  /** A message seems to be lost: makes sure that somebody is there at the other end, or the client connects anew. */
  checkAlive(): void {
    if (this.#state === 'up') atRoot(() => this.#redis?.ping())?.catch(() => undefined);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
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
