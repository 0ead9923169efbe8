import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ServerResponse } from 'node:http';
import type { HttpServer } from '@nestjs/common';
import { leaveAllLocks } from '../core/nesting/lock-context.js';
import { leaveRequest } from './http-request.js';

/** The arrival of a request at its server, before any middleware. */
class Arrival {}

/** The arrival of the request that the running async context handles. */
const current = new AsyncLocalStorage<Arrival>();

const arrivals = new WeakMap<ServerResponse, Arrival>();

/** What is needed of a server of Node. */
interface NodeServer {
  prependListener?(event: 'request', listener: (request: unknown, response: ServerResponse) => void): unknown;
}

const START = 'http.server.request.start';

/** How many apps with an HTTP server are open in this process. */
let openApps = 0;

/**
 * Notes the async context in which each request arrives: at any HTTP/1 server of the process, because a platform may
 * have more of them than it shows, such as Fastify on "localhost"; and at the HTTP/2 server of this app.
 *
 * @returns what the app has to call when it has ended. Node keeps a subscriber for ever: in Jest, each spec file would
 *   leave all its modules behind
 */
export function noteArrivals(adapter: HttpServer | undefined): () => void {
  if (!adapter) return () => undefined;
  if (++openApps === 1) subscribe(START, noteStart);
  const server = adapter.getHttpServer?.() as NodeServer | undefined;
  server?.prependListener?.('request', (_request, response) => note(response));
  let isOpen = true;
  return () => {
    if (isOpen && --openApps === 0) unsubscribe(START, noteStart);
    isOpen = false;
  };
}

function noteStart(message: unknown): void {
  note((message as { response: ServerResponse }).response);
}

/** A request begins in no lock and in no other request, whatever its server began to listen in. */
function note(response: ServerResponse): void {
  if (arrivals.has(response)) return;
  const arrival = new Arrival();
  arrivals.set(response, arrival);
  current.enterWith(arrival);
  leaveRequest();
  leaveAllLocks();
}

/**
 * Tells whether a middleware has led a request into the async context of something else, such as of a job that has made
 * a connection in whose callback the middleware goes on.
 */
export function isLedAway(response: ServerResponse | undefined): boolean {
  const arrival = response && arrivals.get(response);
  return arrival !== undefined && arrival !== current.getStore();
}
