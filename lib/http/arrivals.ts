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
  prependListener?(event: 'request', listener: (request: unknown, response: Http2Part) => void): unknown;
}

/** The response of HTTP/2 alone has a stream. */
type Http2Part = ServerResponse & { readonly stream?: object };

const START = 'http.server.request.start';

/** What Node tells of each HTTP/1 request that comes over the wire, and of no other. */
interface StartMessage {
  readonly response: ServerResponse;
  readonly server: object;
}

/** How many apps with an HTTP server are open in this process. */
let openApps = 0;

/** The servers of the open apps. */
const servers = new WeakSet<object>();

/**
 * Notes the async context in which each request arrives: at any HTTP/1 server of the process, because a platform may
 * have more of them than it shows, such as Fastify on "localhost"; and at the HTTP/2 server of this app. A request that
 * comes over the wire to the server that the platform shows is in no lock, whatever the server began to listen in.
 *
 * @returns what the app has to call when it has ended. Node keeps a subscriber for ever: in Jest, each spec file would
 *   leave all its modules behind
 */
export function noteArrivals(adapter: HttpServer | undefined): () => void {
  if (!adapter) return () => undefined;
  if (++openApps === 1) subscribe(START, noteStart);
  const server = adapter.getHttpServer?.() as NodeServer | undefined;
  if (server) servers.add(server);
  server?.prependListener?.('request', (_request, response) => noteRequest(response));
  let isOpen = true;
  return () => {
    if (isOpen && --openApps === 0) unsubscribe(START, noteStart);
    if (server) servers.delete(server);
    isOpen = false;
  };
}

/** The server of another library, or of the app's own, may count on the locks that it began to listen in. */
function noteStart(message: unknown): void {
  const { response, server } = message as StartMessage;
  note(response);
  leaveRequest();
  if (servers.has(server)) leaveAllLocks();
}

/** An HTTP/1 request that is not noted yet is emitted by hand, in the async context of who goes on after it. */
function noteRequest(response: Http2Part): void {
  if (arrivals.has(response)) return;
  note(response);
  if (!response.stream) return;
  leaveRequest();
  leaveAllLocks();
}

function note(response: ServerResponse): void {
  const arrival = new Arrival();
  arrivals.set(response, arrival);
  current.enterWith(arrival);
}

/**
 * Tells whether a middleware has led a request into the async context of something else, such as of a job that has made
 * a connection in whose callback the middleware goes on.
 */
export function isLedAway(response: ServerResponse | undefined): boolean {
  const arrival = response && arrivals.get(response);
  return arrival !== undefined && arrival !== current.getStore();
}
