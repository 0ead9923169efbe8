import type { Log } from '../log/safe-log.js';
import { now } from '../clock/deadline.js';
import { atRoot } from '../clock/root-context.js';

/** How long a subscription is down, while its server is up, until that is logged, in ms. Most come back sooner. */
const LOG_AFTER_MS = 2_000;

interface Server {
  /** Undefined while the server can be reached. */
  downSince?: number | undefined;
  /** The line to log about its subscription, while that is down. */
  problem?: string | undefined;
  isLogged?: boolean;
  timer?: NodeJS.Timeout;
}

/**
 * Logs subscriptions that are down although their server is up. An outage of the server takes its subscription down
 * too, and is reported once, by the `OutageReporter`.
 */
export class SubscriptionReporter {
  readonly #log: Pick<Log, 'log' | 'warn'>;
  readonly #servers = new Map<string, Server>();

  constructor(log: Pick<Log, 'log' | 'warn'>) {
    this.#log = log;
  }

  serverDown(name: string): void {
    const server = this.#server(name);
    server.downSince ??= now();
    clearTimeout(server.timer);
  }

  /** @returns how long the server was down, in ms */
  serverUp(name: string): number {
    const server = this.#server(name);
    const downMs = now() - (server.downSince ?? now());
    server.downSince = undefined;
    this.#logLater(server);
    return downMs;
  }

  /** @param line says what is wrong with the subscription, as a sentence */
  unsubscribed(name: string, line: string): void {
    const server = this.#server(name);
    server.problem = line;
    this.#logLater(server);
  }

  /** @param line says that the subscription is right again, as a sentence */
  subscribed(name: string, line: string): void {
    const server = this.#server(name);
    clearTimeout(server.timer);
    if (server.isLogged) this.#log.log(line);
    server.problem = undefined;
    server.isLogged = false;
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

  #logLater(server: Server): void {
    clearTimeout(server.timer);
    if (server.problem === undefined || server.isLogged || server.downSince !== undefined) return;
    server.timer = atRoot(() => setTimeout(() => this.#logNow(server), LOG_AFTER_MS).unref());
  }

  #logNow(server: Server): void {
    server.isLogged = true;
    this.#log.warn(server.problem!);
  }
}
