import { atRoot } from '../../clock/root-context.js';
import { afterRunning } from '../../clock/running-time.js';
import type { ConnectionListener } from './connection.js';
import { scriptProbe, type Call, type PlainCall } from './plain-call.js';

/** How long a connection gets at most until its probe is given up, in ms. */
const LONGEST_MS = 10_000;

/**
 * Finds out whether scripts run on a connection that became ready, after one that gave no replies. A connection whose
 * probe gets no reply is given up, and the next one gets twice the time: a server that always replies too late is not
 * connected to over and over, and gets to show that it runs scripts.
 */
export class Probe {
  readonly #listener: Pick<ConnectionListener, 'isSlow'>;
  readonly #givenUp: () => void;
  readonly #longestMs: number;
  readonly #shortestMs: number;
  #patienceMs: number;
  #call: PlainCall | undefined;
  #stopWaiting: (() => void) | undefined;

  /** @param givenUp called when the probe got no reply for long enough */
  constructor(commandTimeoutMs: number, listener: Pick<ConnectionListener, 'isSlow'>, givenUp: () => void) {
    this.#listener = listener;
    this.#givenUp = givenUp;
    this.#shortestMs = this.#patienceMs = commandTimeoutMs;
    this.#longestMs = Math.max(commandTimeoutMs, LONGEST_MS);
  }

  /** Whether the connection counts as ready only when a script gets a reply in time. */
  get isOpen(): boolean {
    return this.#call !== undefined;
  }

  /** Whether the connection has more time to give its first reply. */
  get isPatient(): boolean {
    return this.#stopWaiting !== undefined;
  }

  /** Makes the call to send. */
  start(): PlainCall {
    const call = (this.#call = scriptProbe());
    call.promise.catch(() => undefined);
    const giveUp = () => {
      if (this.#call !== call || !this.isPatient) return;
      this.#stopWaiting = undefined;
      this.#patienceMs = Math.min(2 * this.#patienceMs, this.#longestMs);
      this.#givenUp();
    };
    this.#stopWaiting = atRoot(() => afterRunning(this.#patienceMs, giveUp));
    return call;
  }

  isCall(call: Call): boolean {
    return call === this.#call;
  }

  /** Notes that the probe got its reply, but too late: the server is slow, and another connection would not help. */
  repliedLate(): void {
    this.#stop();
    this.#listener.isSlow();
  }

  /** Notes that a script got its reply in time. */
  succeeded(): void {
    this.drop();
    this.#patienceMs = this.#shortestMs;
  }

  /** Forgets the probe, because its connection has ended. */
  drop(): void {
    this.#stop();
    this.#call = undefined;
  }

  #stop(): void {
    this.#stopWaiting?.();
    this.#stopWaiting = undefined;
  }
}
