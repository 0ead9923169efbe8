import type { Logger } from '@nestjs/common';
import { now } from '../clock/deadline.js';
import { atRoot } from '../clock/root-context.js';

/** How long a subscription is down, while its server is up, until the log tells of it, in ms. Most come back sooner. */
const DEAF_MS = 2_000;

interface Server {
  /** Undefined while it can be reached. */
  downSince?: number | undefined;
  /** What to tell of its subscription, while that is down. */
  unsubscribed?: string | undefined;
  isTold?: boolean;
  timer?: NodeJS.Timeout;
}

/**
 * Knows which servers can't be reached, and tells the log of subscriptions that are down though their server is up: an outage takes both, and is told
 * of once.
 */
export class SubscriptionReporter {
  readonly #log: Pick<Logger, 'log' | 'warn'>;
  readonly #servers = new Map<string, Server>();

  constructor(log: Pick<Logger, 'log' | 'warn'>) {
    this.#log = log;
  }

  /** It can't be reached. */
  down(name: string): void {
    const server = this.#server(name);
    server.downSince ??= now();
    clearTimeout(server.timer);
  }

  /** It can be reached again. Returns for how long it could not, in ms. */
  up(name: string): number {
    const server = this.#server(name);
    const lastedMs = now() - (server.downSince ?? now());
    server.downSince = undefined;
    this.#watch(server);
    return lastedMs;
  }

  /** @param what is wrong with its subscription, as a sentence */
  unsubscribed(name: string, what: string): void {
    const server = this.#server(name);
    server.unsubscribed = what;
    this.#watch(server);
  }

  /** @param what is right again, as a sentence */
  subscribed(name: string, what: string): void {
    const server = this.#server(name);
    clearTimeout(server.timer);
    if (server.isTold) this.#log.log(what);
    server.unsubscribed = undefined;
    server.isTold = false;
  }

  close(): void {
    for (const { timer } of this.#servers.values()) clearTimeout(timer);
    this.#servers.clear();
  }

  #server(name: string): Server {
    let server = this.#servers.get(name);
    if (!server) this.#servers.set(name, (server = {}));
    return server;
  }

  #watch(server: Server): void {
    clearTimeout(server.timer);
    if (server.unsubscribed === undefined || server.isTold || server.downSince !== undefined) return;
    server.timer = atRoot(() => setTimeout(() => this.#tell(server), DEAF_MS).unref());
  }

  #tell(server: Server): void {
    server.isTold = true;
    this.#log.warn(server.unsubscribed!);
  }
}
