import type { Redis } from 'ioredis';
import { atRoot } from '../../clock/root-context.js';

/**
 * Sends a command to a node of a cluster. When the client drops the node meanwhile, it is sent over a connection of its
 * own: nodes do not always agree on which replicas there are, and the client believes each of them in turn.
 *
 * @param timeoutMs how long that connection may take to be made, and then to bring a reply, in ms
 * @param throwIfLate throws when nobody waits for the reply any more
 */
export async function askNode(
  node: Redis,
  words: readonly string[],
  timeoutMs: number,
  throwIfLate: () => void,
): Promise<unknown> {
  const [command, ...args] = words as [string, ...string[]];
  try {
    return await node.call(command, args);
  } catch (error) {
    if (node.status !== 'end') throw error;
  }
  throwIfLate();
  const limits = { connectTimeout: timeoutMs, commandTimeout: timeoutMs, disconnectTimeout: 100 };
  const own = node.duplicate({ lazyConnect: true, retryStrategy: null, ...limits });
  let failure: Error | undefined;
  own.on('error', (error: Error) => (failure = error));
  try {
    await atRoot(() => own.connect());
    return await own.call(command, args);
  } catch (error) {
    // The other only says that the connection is closed.
    throw failure ?? error;
  } finally {
    own.disconnect();
  }
}
