import { AsyncLocalStorage } from 'node:async_hooks';
import type { ServerResponse } from 'node:http';
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
  if (response.socket || typeof response.assignSocket !== 'function' || followed.has(response)) return;
  followed.add(response);
  const inContext = AsyncLocalStorage.snapshot();
  const stop = onceConnectionClosed(response, () => inContext(close, response));
  const assignSocket = response.assignSocket.bind(response);
  response.assignSocket = (socket) => {
    stop?.();
    inContext(assignSocket, socket);
  };
}

function onceConnectionClosed({ req: { socket } }: ServerResponse, listener: () => void): (() => void) | undefined {
  // That of a serverless adapter is none.
  if (!(socket instanceof Socket)) return undefined;
  const later = (): void => process.nextTick(listener);
  return socket.destroyed ? void later() : onceClosed(socket, later);
}

/** Does what Node does for the response that it sends. */
function close(response: ServerResponse): void {
  if (response.socket || response.closed) return;
  response.destroy();
  Reflect.set(response, '_closed', true);
  response.emit('close');
}
