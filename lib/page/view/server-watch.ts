import { now } from '../../clock/deadline.js';
import type { StoreHealth } from '../../core/store-health.js';
import { detailOf } from '../../errors/lock.error.js';
import type { ServerState } from '../page-snapshot.js';

/** How often the server is checked while somebody looks, in ms. A check acquires a lock of its own. */
const EVERY_MS = 5_000;

/** Checks every few seconds whether locks can be acquired, and knows for how long they can't. */
export class ServerWatch {
  readonly #check: () => Promise<StoreHealth>;
  #health: StoreHealth | undefined;
  #checkedAt = -Infinity;
  #downSince: number | undefined;

  constructor(check: () => Promise<StoreHealth>) {
    this.#check = check;
  }

  /** Returns the state, by a check that is no older than five seconds; by a new one while the server is down. */
  async state(): Promise<Omit<ServerState, 'unreached'>> {
    if (now() >= this.#checkedAt + EVERY_MS || this.#downSince !== undefined) await this.#renew();
    const { isUp, up, of, errors, problems } = this.#health!;
    return {
      isUp,
      up,
      of,
      errors: [...new Set(errors.map(detailOf))],
      problems: [...new Set(problems)],
      checkedAgoMs: Math.round(now() - this.#checkedAt),
      downForMs: this.#downSince === undefined ? null : Math.round(now() - this.#downSince),
    };
  }

  async #renew(): Promise<void> {
    this.#health = await this.#check();
    this.#checkedAt = now();
    if (this.#health.isUp) this.#downSince = undefined;
    else this.#downSince ??= this.#checkedAt;
  }
}
