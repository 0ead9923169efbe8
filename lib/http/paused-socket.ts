import { Socket } from 'node:net';

/** What Node keeps of the system's socket. It has no public way to ask that. */
interface SystemSocket {
  readonly _handle?: { getpeername?(into: object): number | undefined } | null;
}

/**
 * Closes a connection that Node has stopped reading, if its client has gone. Node stops while the responses to
 * pipelined HTTP/1 requests pile up behind another one, and while nobody reads a body. Until it reads again, it does
 * not hear of the end of the connection.
 *
 * The system knows when a client has reset the connection. TCP keep-alive, which is on by then, tells it when the
 * client has closed the connection, or can't be reached. Nothing is read, because Node would take that for requests
 * that it does not want yet, and nothing is written, because the response belongs to the app.
 */
export function closeIfClientHasGone(connection: unknown): void {
  if (connection instanceof Socket && connection.isPaused() && !hasClient(connection)) connection.destroy();
}

/**
 * Tells whether the connection has another end. In doubt it has: other runtimes and pipes do not know, nor does TLS
 * over them, which answers nothing.
 */
function hasClient({ _handle: handle }: Socket & SystemSocket): boolean {
  const error = handle?.getpeername?.({});
  return error === undefined || error >= 0;
}
