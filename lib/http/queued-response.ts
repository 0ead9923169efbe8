import { AsyncLocalStorage } from 'node:async_hooks';
import type { ServerResponse } from 'node:http';

const bound = new WeakSet<ServerResponse>();

/**
 * Keeps a response that waits behind another one on its connection in the running async context. Node sends what such a
 * response has written when the one ahead ends, in the async context of whoever ended that: its streams would go on in
 * there, inside the locks of another request.
 */
export function keepQueuedInContext(response: ServerResponse): void {
  if (response.socket || typeof response.assignSocket !== 'function' || bound.has(response)) return;
  bound.add(response);
  const inContext = AsyncLocalStorage.snapshot();
  const assignSocket = response.assignSocket.bind(response);
  response.assignSocket = (socket) => inContext(assignSocket, socket);
}
