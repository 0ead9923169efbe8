import type { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { http2StreamOf } from './http2-stream.js';
import { keepAlive } from './keep-alive.js';
import { onceClosed } from './socket-close.js';

type Connection = Partial<EventEmitter> & { readonly destroyed?: boolean };

/** Emitted on a queued response when the app has ended it. */
const ENDED_IN_QUEUE = Symbol('ended in queue');

const queued = new WeakSet<ServerResponse>();

/** Responses that the app has ended, though `writableEnded` may not tell. */
const endedByApp = new WeakSet<ServerResponse>();

/** What waits for the end of a response. */
const listenersOf = new WeakMap<ServerResponse, Set<() => void>>();

/** Tells whether the connection of a response, or its HTTP/2 stream, is closed: nothing can be sent any more. */
export function isClosed(response: ServerResponse): boolean {
  return (
    response.destroyed || http2StreamOf(response)?.destroyed === true || connectionOf(response)?.destroyed === true
  );
}

/**
 * Tells whether the app has ended the response. With serverless adapters `writableEnded` does not always tell: their
 * sockets take all at once, so Node emits `finish` before it is true; or their `end()` never calls that of Node.
 */
export function isEndedByApp(response: ServerResponse): boolean {
  return response.writableEnded || endedByApp.has(response);
}

/** Tells whether the app has ended the response, or nobody can receive it any more. */
export function isOver(response: ServerResponse): boolean {
  return isEndedByApp(response) || isClosed(response);
}

/**
 * Calls `listener` once, when the response has been sent or can't be sent any more. Platforms differ in their events:
 * HTTP/1 may emit `close` without `finish`, the response of a serverless adapter has no connection that closes, and
 * HTTP/2 emits `finish` for a response that it has cut off, too.
 *
 * A client may send its next request before it has the response to the last one. Node keeps the next response in a
 * queue, without a socket: it emits nothing when the connection closes, and nothing when the app ends it. For such a
 * response its end by the app counts.
 *
 * @returns a function that stops listening
 */
export function onceEnded(response: ServerResponse, listener: () => void): () => void {
  let listeners = listenersOf.get(response);
  if (!listeners) listenTo(response, (listeners = new Set()));
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Adds one listener of ours to each event of a response: where it has too many, Node warns of a leak. */
function listenTo(response: ServerResponse, listeners: Set<() => void>): void {
  listenersOf.set(response, listeners);
  const stream = http2StreamOf(response);
  const connection = connectionOf(response);
  const ended = (): void => {
    response.off('finish', finish).off('close', ended).off(ENDED_IN_QUEUE, ended);
    stream?.off('close', ended);
    stopListening?.();
    listenersOf.delete(response);
    for (const listener of listeners) listener();
  };
  const finish = (): void => {
    if (!stream) endedByApp.add(response);
    ended();
  };
  response.on('finish', finish).on('close', ended);
  stream?.on('close', ended);
  // One that has closed emits nothing any more, and would be kept by the watch.
  const stopListening = isEmitter(connection) && !isClosed(response) ? onceClosed(connection, ended) : undefined;
  // The connection of an HTTP/2 session that has ended can't even be asked for its type.
  keepAlive(stream?.session?.destroyed === false ? stream.session.socket : connection);
  // The response of a serverless adapter may have no connection, and emit nothing when the app ends it.
  if (response.socket || stream) return;
  emitEndInQueue(response);
  response.on(ENDED_IN_QUEUE, ended);
}

/** Returns the connection of an HTTP/1 request. The response itself has it only when its turn in the queue has come. */
function connectionOf(response: ServerResponse): Connection | undefined {
  return http2StreamOf(response)
    ? undefined
    : ((response.req as { readonly socket?: Connection } | undefined)?.socket ?? undefined);
}

/** The socket of a serverless adapter may have some methods of an emitter only. */
const isEmitter = (connection: Connection | undefined): connection is EventEmitter =>
  typeof connection?.on === 'function' && typeof connection.removeListener === 'function';

function emitEndInQueue(response: ServerResponse): void {
  if (queued.has(response)) return;
  queued.add(response);
  for (const name of ['end', 'destroy'] as const) {
    const act = response[name].bind(response) as (...args: unknown[]) => ServerResponse;
    response[name] = (...args: unknown[]) => {
      const result = act(...args);
      if (name === 'end') endedByApp.add(response);
      if (!response.socket) response.emit(ENDED_IN_QUEUE);
      return result;
    };
  }
}
