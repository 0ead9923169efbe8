import type { Redis } from 'ioredis';
import { stalledMs } from '../../clock/running-time.js';

/** An error that a client emits. */
export interface ConnectionFailure extends NodeJS.ErrnoException {
  /** What the server refused. */
  readonly command?: { readonly name?: string };
}

/** The errors of a connection that breaks while something is being written or read. */
const BROKEN = new Set(['EPIPE', 'ECONNRESET']);

/**
 * Whether an error that a client emits says nothing about the server.
 *
 * @param connectingAt when the client last began to connect
 */
export function isNoise({ code }: ConnectionFailure, { status, options }: Redis, connectingAt: number): boolean {
  // A connection that was well has broken: what is wrong shows when the client makes the next one.
  if (status === 'ready' && BROKEN.has(code!)) return true;
  // The timer of the attempt runs before the reply is read, when this process has stood still.
  const limitMs = options.connectTimeout || Infinity;
  return code === 'ETIMEDOUT' && stalledMs(connectingAt + limitMs, limitMs) > 0;
}
