/** Where to report an outage: once when it begins, once when it is over. */
interface OutageReport {
  down(cause: Error): void;
  up(): void;
}

/**
 * Lets calls fail fast while the server does not reply: once a call got no reply, the circuit is open until one
 * comes. Meanwhile the connection lets one call at a time through, as a probe.
 */
export class CircuitBreaker {
  readonly #report: OutageReport;
  #lastError: Error | undefined;
  #isOpen = false;
  #awaitsReply = false;

  constructor(report: OutageReport) {
    this.#report = report;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** What is wrong; undefined while nothing is. */
  get lastError(): Error | undefined {
    return this.#lastError;
  }

  /**
   * Notes an error of the connection. That alone does not open the circuit: the client may reconnect in time for all
   * calls.
   */
  note(error: Error): void {
    if (!this.#lastError) this.#report.down(error);
    if (!this.#lastError || !isOwnWords(error)) this.#lastError = error;
  }

  /**
   * Opens the circuit, because a call got no reply.
   *
   * @param wasReady whether the connection was ready. Then the next one that gets ready is no sign that calls get
   *   replies: a server whose writes are paused makes connections as ever
   */
  open(error: Error, wasReady: boolean): void {
    this.note(error);
    this.#isOpen = true;
    this.#awaitsReply ||= wasReady;
  }

  /** Closes the circuit, because the connection is ready. Returns false when it stays open until there is a reply. */
  ready(): boolean {
    if (!this.#awaitsReply) this.close();
    return !this.#awaitsReply;
  }

  /** Closes the circuit, because the server replied. */
  close(): void {
    if (this.#lastError) this.#report.up();
    this.#lastError = undefined;
    this.#isOpen = this.#awaitsReply = false;
  }
}

/** What ioredis says of its own retries and options says less than what the server or the network said before. */
const isOwnWords = ({ name, message }: Error): boolean =>
  name === 'MaxRetriesPerRequestError' || message.startsWith("Stream isn't writeable");
