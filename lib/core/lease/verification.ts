import { now } from '../../clock/deadline.js';
import { atRoot } from '../../clock/root-context.js';

/** The shortest time between two verifications, in ms. */
const INTERVAL_MS = 500;

/**
 * Verifies the leases at once on request, but at most twice a second. Otherwise a connection that drops again and again
 * would leave a process no time to renew its leases. Requests that come too soon share one later verification.
 */
export class Verification {
  readonly #verify: () => void;
  #verifiedAt = -Infinity;
  #timer: NodeJS.Timeout | undefined;

  constructor(verify: () => void) {
    this.#verify = verify;
  }

  /** Does not keep the process alive. */
  request(): void {
    if (this.#timer) return;
    const inMs = this.#verifiedAt + INTERVAL_MS - now();
    if (inMs <= 0) this.#start();
    else this.#timer = atRoot(() => setTimeout(() => this.#start(), Math.ceil(inMs)).unref());
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #start(): void {
    this.#timer = undefined;
    this.#verifiedAt = now();
    this.#verify();
  }
}
