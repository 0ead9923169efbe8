import { Socket } from 'node:net';

/**
 * How long a client may send nothing before its system is asked for a sign of life, in ms. It answers without the help
 * of its program, so a client that only reads slowly, or not at all, stays.
 */
const KEEP_ALIVE_AFTER_MS = 30_000;

/** What Node keeps of the system's socket. It has no public way to ask that. */
interface SystemSocket {
  readonly _handle?: { getpeername?(into: object): number } | null;
}

/**
 * Closes a connection that Node has stopped reading, if its client has gone. Node stops while the responses to
 * pipelined HTTP/1 requests pile up behind another one, and while nobody reads a body. Until it reads again, it does
 * not hear of the end of the connection.
 *
 * The system knows when a client has reset the connection. TCP keep-alive tells it when the client has closed the
 * connection, or can't be reached. Nothing is read, because Node would take that for requests that it does not want
 * yet, and nothing is written, because the response belongs to the app.
 */
export function closeIfClientHasGone(connection: unknown): void {
  if (!(connection instanceof Socket) || !connection.isPaused()) return;
  // It stays on, because nobody can tell what it was before.
  if (hasClient(connection)) connection.setKeepAlive(true, KEEP_ALIVE_AFTER_MS);
  else connection.destroy();
}

/** Tells whether the connection has another end. In doubt it has: other runtimes, and pipes, do not know. */
function hasClient({ _handle: handle }: Socket & SystemSocket): boolean {
  return !handle?.getpeername || handle.getpeername({}) >= 0;
}
