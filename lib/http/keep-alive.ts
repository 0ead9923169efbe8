import { Socket } from 'node:net';

/**
 * How long a client may send nothing before its system is asked for a sign of life, in ms. It answers without the help
 * of its program, so a client that only reads slowly, or not at all, stays.
 */
const KEEP_ALIVE_AFTER_MS = 30_000;

/** The connections of which the system has been asked that. */
const asked = new WeakSet<Socket>();

/**
 * Lets the system find out when the client of a connection can't be reached any more, by TCP keep-alive. A host that
 * loses its power or its network says nothing: as long as nothing is sent to it, Node would take it for a client that
 * reads. It stays on, because nobody can tell what it was before.
 */
export function keepAlive(connection: unknown): void {
  if (!(connection instanceof Socket) || asked.has(connection)) return;
  asked.add(connection);
  // Not called as a method: that of the socket that an HTTP/2 session shows would throw.
  Socket.prototype.setKeepAlive.call(connection, true, KEEP_ALIVE_AFTER_MS);
}
