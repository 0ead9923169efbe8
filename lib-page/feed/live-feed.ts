import type { PageSnapshot } from '../../lib/page/page-snapshot.js';
import { fetchSnapshot, readEvents, Refused, type ServerEvent, type Wanted } from './api.js';
import type { FeedState, FeedStatus } from './feed-state.js';

/** Events come once a second; after this silence the feed polls. */
const SILENCE_MS = 5_000;
const POLL_MS = 2_000;
/** How long polling goes on before the feed tries events again. */
const RETRY_EVENTS_MS = 30_000;

/**
 * Gets snapshots, by server-sent events; by polling when these do not arrive, because a proxy holds them back or the app
 * is away. Asks for events again now and then, and as soon as the app is back.
 */
export class LiveFeed {
  #state: FeedState = { status: 'connecting', snapshot: undefined, receivedAt: 0, refusal: '' };
  #wanted: Wanted = { filter: '', key: '' };
  readonly #onChange: (state: FeedState) => void;
  /** Ends the stream of events. */
  #events: AbortController | undefined;
  /** Ends the polling. */
  #polling: AbortController | undefined;
  #timer = 0;
  #eventsTriedAt = 0;

  constructor(onChange: (state: FeedState) => void) {
    this.#onChange = onChange;
  }

  get isRunning(): boolean {
    return this.#events !== undefined || this.#polling !== undefined;
  }

  /** Starts, or starts anew with other rows. */
  start(wanted: Wanted = this.#wanted): void {
    this.#close();
    this.#wanted = wanted;
    const { status } = this.#state;
    this.#listen();
    if (status === 'polling' || status === 'away') void this.#poll();
    else if (status !== 'live') this.#change({ status: 'connecting' });
  }

  /** Stops until the next start; `paused` says so to the reader. */
  stop(status: FeedStatus = this.#state.status): void {
    this.#close();
    this.#change({ status });
  }

  #close(): void {
    clearTimeout(this.#timer);
    this.#events?.abort();
    this.#events = undefined;
    this.#polling?.abort();
    this.#polling = undefined;
  }

  #listen(): void {
    this.#eventsTriedAt = performance.now();
    this.#events?.abort();
    const events = (this.#events = new AbortController());
    const lose = () => {
      if (!events.signal.aborted) this.#loseEvents();
    };
    readEvents(this.#wanted, events.signal, (event) => {
      if (!events.signal.aborted) this.#take(event);
    }).then(lose, lose);
    if (!this.#polling) this.#expectEvent();
  }

  #take({ type, data }: ServerEvent): void {
    // The stream is over, so that the app can decide again who may see it.
    if (type === 'again') return this.#listen();
    if (type !== 'snapshot') return;
    if (this.#polling) this.#endPolling();
    this.#received('live', JSON.parse(data) as PageSnapshot);
    this.#expectEvent();
  }

  #expectEvent(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#loseEvents(), SILENCE_MS);
  }

  #loseEvents(): void {
    this.#events?.abort();
    this.#events = undefined;
    if (!this.#polling) void this.#poll();
  }

  #endPolling(): void {
    this.#polling?.abort();
    this.#polling = undefined;
  }

  async #poll(): Promise<void> {
    clearTimeout(this.#timer);
    const polling = (this.#polling ??= new AbortController());
    const wasAway = this.#state.status === 'away';
    try {
      const snapshot = await fetchSnapshot(this.#wanted, polling.signal);
      if (polling.signal.aborted) return;
      this.#received('polling', snapshot);
      const isTimeForEvents = performance.now() - this.#eventsTriedAt > RETRY_EVENTS_MS;
      if (!this.#events && (wasAway || isTimeForEvents)) this.#listen();
    } catch (error) {
      if (polling.signal.aborted) return;
      if (error instanceof Refused && error.status < 500)
        this.#change({ status: 'refused', refusal: refusalOf(error) });
      else this.#change({ status: 'away' });
    }
    this.#timer = setTimeout(() => void this.#poll(), POLL_MS);
  }

  #received(status: FeedStatus, snapshot: PageSnapshot): void {
    this.#change({ status, snapshot, receivedAt: performance.now(), refusal: '' });
  }

  #change(change: Partial<FeedState>): void {
    this.#state = { ...this.#state, ...change };
    this.#onChange(this.#state);
  }
}

function refusalOf({ status, message }: Refused): string {
  if (status === 401 || status === 403)
    return 'You may not see the locks any more, or your session has ended. Reload to sign in again.';
  return message || `The app answers with status ${status}.`;
}
