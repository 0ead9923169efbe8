import type { Redis } from 'ioredis';
import { atRoot } from '../../clock/root-context.js';

const TRY_AGAIN_MS = 100;

/**
 * Connects a client of ours again that ended without being told to. ioredis does so, and never tries again, when it hears from
 * Sentinel of a failover in the moment when it asks for the new master.
 */
export class ReconnectOnEnd {
  readonly #redis: Redis;
  #timer: NodeJS.Timeout | undefined;

  constructor(redis: Redis) {
    this.#redis = redis;
    redis.on('end', this.#ended);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#redis.off('end', this.#ended);
  }

  readonly #ended = (): void => {
    clearTimeout(this.#timer);
    this.#timer = atRoot(() =>
      setTimeout(() => void this.#redis.connect().catch(() => undefined), TRY_AGAIN_MS).unref(),
    );
  };
}
