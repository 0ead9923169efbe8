import { now } from '../../clock/deadline.js';
import { SharedTimer } from '../../clock/shared-timer.js';

/** The shortest time between two verifications, in ms. */
const INTERVAL_MS = 500;

/**
 * Verifies the leases at once on request, but at most twice a second. Otherwise a connection that drops again and again
 * would leave a process no time to renew its leases. Requests that come too soon share one later verification.
 */
export class Verification {
  readonly #verify: () => void;
  #verifiedAt = -Infinity;
  readonly #timer = new SharedTimer();

  constructor(verify: () => void) {
    this.#verify = verify;
  }

  /** Does not keep the process alive. */
  request(): void {
    if (this.#timer.isSet) return;
    const inMs = this.#verifiedAt + INTERVAL_MS - now();
    if (inMs <= 0) this.#start();
    else this.#timer.set(Math.ceil(inMs), () => this.#start()).unref();
  }

  stop(): void {
    this.#timer.clear();
  }

  #start(): void {
    this.#verifiedAt = now();
    this.#verify();
  }
}
