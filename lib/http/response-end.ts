import type { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { onceClosed } from './socket-close.js';

/** What an HTTP/2 response stands on. It alone tells the end of a `HEAD` request that was cancelled. */
interface Http2Part {
  readonly stream?: EventEmitter & { readonly destroyed: boolean };
}

type Connection = Partial<EventEmitter> & { readonly destroyed?: boolean };

/** Told to a queued response when the app has given it its whole answer. */
const ENDED_IN_QUEUE = Symbol('ended in queue');

const queued = new WeakSet<ServerResponse>();

/** Whether its connection, or its stream of one, is closed: it will say nothing any more. */
export function isClosed(response: ServerResponse & Http2Part): boolean {
  return response.destroyed || response.stream?.destroyed === true || connectionOf(response)?.destroyed === true;
}

/** Whether the app has given its whole answer, or nobody can hear it any more. */
export function isOver(response: ServerResponse): boolean {
  return response.writableEnded || isClosed(response);
}

/**
 * Calls once, when the answer has been sent, or can't be. Platforms differ in what they tell: HTTP/1 may `close`
 * without a `finish`, the response of a serverless adapter has no connection that closes, and HTTP/2 says `finish` of
 * what it has cut off, too.
 *
 * A client may send its next request before it has the answer to the last one. Node keeps that response back without a
 * socket: it says nothing when the connection closes, and nothing when the app ends it. Its end counts then: what the
 * app has to say is said.
 */
export function onceEnded(response: ServerResponse & Http2Part, tell: () => void): void {
  const { stream } = response;
  const connection = connectionOf(response);
  const ended = (): void => {
    response.off('finish', ended).off('close', ended).off(ENDED_IN_QUEUE, ended);
    stream?.off('close', ended);
    stopListening?.();
    tell();
  };
  response.on('finish', ended).on('close', ended);
  stream?.on('close', ended);
  const stopListening = isEmitter(connection) ? onceClosed(connection, ended) : undefined;
  if (!connection || response.socket) return;
  tellEndInQueue(response);
  response.on(ENDED_IN_QUEUE, ended);
}

/** The connection of an HTTP/1 request. The response has one only when it is its turn. */
function connectionOf(response: ServerResponse & Http2Part): Connection | undefined {
  return response.stream
    ? undefined
    : ((response.req as { readonly socket?: Connection } | undefined)?.socket ?? undefined);
}

const isEmitter = (connection: Connection | undefined): connection is EventEmitter =>
  typeof connection?.on === 'function';

function tellEndInQueue(response: ServerResponse): void {
  if (queued.has(response)) return;
  queued.add(response);
  for (const name of ['end', 'destroy'] as const) {
    const act = response[name].bind(response) as (...args: unknown[]) => ServerResponse;
    response[name] = (...args: unknown[]) => {
      const answer = act(...args);
      if (!response.socket) response.emit(ENDED_IN_QUEUE);
      return answer;
    };
  }
}
