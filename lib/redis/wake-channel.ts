import type { Redis } from 'ioredis';
import { now, timerAt } from '../clock/deadline.js';
import { subscriberOf } from './redis-client.js';

/** What the channel said, and what became of it. */
interface WakeListener {
  message(text: string): void;
  /** It works from now on (`again`: after it was down); what was said before was missed. */
  up(again: boolean): void;
  /** Told once, until it is up again. */
  down(cause: Error | undefined): void;
}

/**
 * On which Redis tells this process of the locks that it is given: one subscription, on a connection of its own, however many
 * wait; opened when somebody waits for the first time.
 */
export class WakeChannel {
  readonly #commands: Redis;
  readonly #timeoutMs: number;
  readonly #listener: WakeListener;
  readonly #names: string[] = [];
  #redis: Redis | undefined;
  #state: 'new' | 'up' | 'down' = 'new';
  #lastError: Error | undefined;
  #doubt: NodeJS.Timeout | undefined;

  constructor(commands: Redis, commandTimeoutMs: number, listener: WakeListener) {
    this.#commands = commands;
    this.#timeoutMs = commandTimeoutMs;
    this.#listener = listener;
  }

  /** Adds a name to listen for. */
  name(name: string): void {
    this.#names.push(name);
    if (this.#state === 'up') void this.#subscribe();
  }

  /** Begins to listen, if it has not begun. */
  open(): void {
    if (this.#redis) return;
    const redis = (this.#redis = subscriberOf(this.#commands, this.#timeoutMs));
    redis.on('ready', () => void this.#subscribe());
    redis.on('close', () => this.#down(this.#lastError));
    redis.on('error', (error: Error) => (this.#lastError = error));
    redis.on('message', (_name: string, text: string) => this.#listener.message(text));
    redis.connect().catch(() => undefined);
  }

  /** A message seems to be lost: makes sure that somebody is there at the other end, or connects anew. */
  doubt(): void {
    const redis = this.#redis;
    if (!redis || this.#state !== 'up' || this.#doubt) return;
    const trust = () => {
      clearTimeout(this.#doubt);
      this.#doubt = undefined;
    };
    this.#doubt = timerAt(now() + this.#timeoutMs, () => {
      trust();
      redis.disconnect(true);
    });
    redis.ping().then(trust, trust);
  }

  close(): void {
    clearTimeout(this.#doubt);
    this.#redis?.removeAllListeners().on('error', () => undefined);
    this.#redis?.disconnect();
  }

  async #subscribe(): Promise<void> {
    try {
      await this.#redis!.subscribe(...this.#names);
      const again = this.#state === 'down';
      this.#state = 'up';
      this.#lastError = undefined;
      this.#listener.up(again);
    } catch (error) {
      this.#down(error as Error);
    }
  }

  #down(cause: Error | undefined): void {
    if (this.#state === 'down') return;
    this.#state = 'down';
    this.#listener.down(cause);
  }
}
