import { AsyncLocalStorage } from 'node:async_hooks';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { onceClosed } from './socket-close.js';

const followed = new WeakSet<ServerResponse>();

/**
 * Follows a response that waits behind another one on its connection.
 *
 * Keeps it in the running async context. Node sends what such a response has written when the one ahead ends, in the
 * async context of whoever ended that: its streams would go on in there, inside the locks of another request.
 *
 * Closes it when the connection closes. Node emits `close` only on the response that it sends, so a handler that waits
 * for the end of this one, as `pipeline()` does, would wait for good.
 */
export function followQueued(response: ServerResponse): void {
  // One that has been sent has no socket either.
  if (response.socket || response.writableFinished || response.closed) return;
  if (typeof response.assignSocket !== 'function' || followed.has(response)) return;
  followed.add(response);
  const inContext = AsyncLocalStorage.snapshot();
  const stop = onceConnectionClosed(response, () => inContext(close, response));
  // A double of one may end without a turn.
  response.once('finish', stop).once('close', stop);
  const assignSocket = response.assignSocket.bind(response);
  response.assignSocket = (socket) => {
    stop();
    inContext(assignSocket, socket);
  };
}

/** @returns a function that stops listening */
function onceConnectionClosed(response: ServerResponse, listener: () => void): () => void {
  const socket = (response.req as IncomingMessage | undefined)?.socket;
  const later = (): void => process.nextTick(listener);
  // That of a serverless adapter is none.
  const isConnection = socket instanceof Socket;
  if (isConnection && !socket.destroyed) return onceClosed(socket, later);
  if (isConnection) later();
  return () => undefined;
}

/** Does what Node does for the response that it sends. It may have given this one the dead connection meanwhile. */
function close(response: ServerResponse): void {
  if (response.closed) return;
  response.destroy();
  Reflect.set(response, '_closed', true);
  response.emit('close');
}
