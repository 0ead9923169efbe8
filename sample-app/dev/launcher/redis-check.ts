import { Redis } from 'ioredis';
import { reason } from '../../src/errors/reason.js';

/** Asks Redis for a sign of life. Returns null when it gives one, otherwise the reason. */
export async function whyRedisIsDown(url: string): Promise<string | null> {
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: 2_000,
    commandTimeout: 2_000,
    retryStrategy: null,
  });
  let problem: unknown;
  redis.on('error', (error) => (problem = error));
  try {
    await redis.ping();
    return null;
  } catch (error) {
    return reason(problem ?? error);
  } finally {
    redis.disconnect();
  }
}
