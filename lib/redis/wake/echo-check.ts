import type { Redis } from 'ioredis';
import { now } from '../../clock/deadline.js';
import { atRoot } from '../../clock/root-context.js';
import type { PublishedOver } from '../connection/connection.js';
import { RefusedError } from '../connection/connection-errors.js';
import { lacksRight } from '../connection/redis-diagnosis.js';

/** What a process publishes on its own channel to learn whether messages still reach it. */
const ECHO = 'echo';

/** How often to do so at most, and how long the echo may take, in ms. */
const EVERY_MS = 5_000;
const WITHIN_MS = 1_000;

/** Publishes a message where locks are released. Resolves with how many subscribers there are on that server. */
export type Publish = (channel: string, message: string, over?: PublishedOver) => Promise<number>;

interface EchoListener {
  /** No echo was heard. */
  deaf(): void;
  /** The server refuses to publish. Called once. */
  mute(error: Error): void;
}

/**
 * Finds out whether messages still reach a subscription. The server that its connection was made to may be a replica by
 * now, behind the same name as the next master, or may have left its cluster: it replies, but no message of a lock
 * comes that way.
 */
export class EchoCheck {
  readonly #publish: Publish;
  readonly #listener: EchoListener;
  #isMute = false;
  #askedAt = -Infinity;
  #heardAt = 0;
  #echoedAt = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(publish: Publish, listener: EchoListener) {
    this.#publish = publish;
    this.#listener = listener;
  }

  /** Notes that messages reach the subscription at this moment. */
  heard(): void {
    this.#heardAt = now();
  }

  /** Notes a message that has arrived. Returns whether it is the echo. */
  isEcho(text: string): boolean {
    this.heard();
    if (text !== ECHO) return false;
    this.#echoedAt = this.#heardAt;
    return true;
  }

  /** Whether no message has arrived, and no echo has been asked for, for a while. */
  get isDue(): boolean {
    return now() >= Math.max(this.#askedAt, this.#heardAt) + EVERY_MS;
  }

  /**
   * Asks for an echo on a channel of a subscription, unless that was a moment ago.
   *
   * @param key in a cluster, the key whose message was lost. Messages of other nodes say nothing of its node
   */
  start(channel: string, subscription: Redis, key?: string): void {
    if (now() < this.#askedAt + EVERY_MS) return;
    this.#askedAt = now();
    const lastHeardAt = () => (key === undefined ? this.#heardAt : this.#echoedAt);
    atRoot(() => this.#publish(channel, ECHO, { key, besides: subscription })).then(
      (subscribers) => this.#expectEcho(subscribers, lastHeardAt),
      this.#refused,
    );
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  readonly #refused = (error: Error): void => {
    if (this.#isMute || !(error instanceof RefusedError) || !lacksRight(error.reply)) return;
    this.#isMute = true;
    this.#listener.mute(error);
  };

  #expectEcho(subscribers: number, lastHeardAt: () => number): void {
    if (subscribers === 0) return this.#listener.deaf();
    // Timers run before sockets are read: after a stall of the process, the echo may be there already.
    const look = () => setImmediate(() => lastHeardAt() < this.#askedAt && this.#listener.deaf());
    this.#timer = atRoot(() => setTimeout(look, WITHIN_MS).unref());
  }
}
