import type { Redis } from 'ioredis';
import { willReconnect } from './redis-diagnosis.js';

/**
 * Keeps a client from getting ready after its connection has ended. In ioredis 5 it does when that happens in the
 * handshake and `enableReadyCheck` is false: and because it counts as ready, it never connects again.
 */
export function readyWhileConnected(redis: Redis): Redis {
  const emit = redis.emit.bind(redis);
  redis.emit = (...event) => {
    if (event[0] !== 'ready' || !redis.stream.destroyed) return emit(...event);
    redis.status = willReconnect(redis) ? 'reconnecting' : 'end';
    return false;
  };
  return redis;
}
