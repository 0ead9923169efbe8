import { AsyncLocalStorage } from 'node:async_hooks';
import type { ServerResponse } from 'node:http';
import type { HttpServer } from '@nestjs/common';

/** The arrival of a request, before any middleware. */
class Arrival {
  readonly leaveLocks: () => void;

  constructor(leaveLocks: () => void) {
    this.leaveLocks = leaveLocks;
  }
}

/** The arrival of the request that the running async context handles. */
const current = new AsyncLocalStorage<Arrival>();

const arrivals = new WeakMap<ServerResponse, Arrival>();

/** What is needed of a server of Node. */
interface NodeServer {
  prependListener?(event: 'request', listener: (request: unknown, response: ServerResponse) => void): unknown;
}

/**
 * Notes the async context in which each request of an app arrives.
 *
 * @param leaveLocks takes the running async context out of all locks of the app
 */
export function noteArrivals(adapter: HttpServer | undefined, leaveLocks: () => void): void {
  const server = adapter?.getHttpServer?.() as NodeServer | undefined;
  server?.prependListener?.('request', (_request, response) => {
    const arrival = new Arrival(leaveLocks);
    arrivals.set(response, arrival);
    current.enterWith(arrival);
  });
}

/**
 * Leaves the locks of something else, if a middleware has led the request into its async context: such as that of a job
 * that has made a connection whose callback the middleware goes on in.
 */
export function leaveForeignLocks(response: ServerResponse | undefined): void {
  const arrival = response && arrivals.get(response);
  if (arrival && arrival !== current.getStore()) arrival.leaveLocks();
}
