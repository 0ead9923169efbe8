import type { Redis } from 'ioredis';
import { atRoot } from '../../clock/root-context.js';

const TRY_AGAIN_MS = 100;

/**
 * Reconnects a client of ours that ended by itself. ioredis ends for good when Sentinel reports a failover at the
 * moment when ioredis asks it for the new master.
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
