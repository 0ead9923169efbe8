import type { ServerResponse } from 'node:http';
import { followStream } from '../../http/reset-stream.js';
import { isClosed, onceEnded } from '../../http/response-end.js';
import { PAGE_HEADERS } from './page-headers.js';

/** A connection that takes nothing for so long is closed, in ms. */
const STUCK_MS = 30_000;

/**
 * Sends server-sent events. It writes to the response of Node, because interceptors of the app would change the events
 * of `@Sse()`, or end them. A browser that is slow misses events, so that none pile up.
 */
export class EventStream {
  readonly #response: ServerResponse;
  readonly #lastsMs: number;
  #stuck: NodeJS.Timeout | undefined;

  /** @param lastsMs how long it lasts at most, in ms. At its end an event `again` asks the browser to connect again */
  constructor(response: ServerResponse, lastsMs: number) {
    this.#response = response;
    this.#lastsMs = lastsMs;
  }

  /**
   * Sends the headers, unless an event was sent already.
   *
   * @param onClose called once, when either side has ended the stream, or had before
   */
  open(onClose: () => void): void {
    const response = this.#response;
    const lasts = setTimeout(() => {
      // Whoever reads it as an `EventSource` ignores an event without data.
      this.send('again', '{}');
      this.end();
    }, this.#lastsMs).unref();
    const closed = (): void => {
      clearTimeout(lasts);
      clearTimeout(this.#stuck);
      onClose();
    };
    // The client may have left while the guards decided: then no event tells of it any more.
    if (isClosed(response)) return closed();
    followStream(response);
    onceEnded(response, closed);
    this.#start();
  }

  /** Sends JSON, which has no line breaks, unless an earlier event is still on its way. */
  send(type: string, json: string): void {
    this.#start();
    this.#write(`event: ${type}\ndata: ${json}\n\n`);
  }

  end(): void {
    this.#start();
    this.#response.end();
  }

  #start(): void {
    if (this.#response.headersSent) return;
    // A connection that is kept when the stream has ended would hold up the end of the app.
    this.#response.shouldKeepAlive = false;
    this.#response.writeHead(200, {
      ...PAGE_HEADERS,
      'Content-Type': 'text/event-stream; charset=utf-8',
      // A proxy must neither keep nor compress it, or events come late.
      'Cache-Control': 'no-store, no-transform',
      'X-Accel-Buffering': 'no',
    });
    this.#response.flushHeaders();
  }

  #write(text: string): void {
    if (this.#stuck || this.#response.writableEnded || this.#response.write(text)) return;
    this.#stuck = setTimeout(() => this.#response.destroy(), STUCK_MS).unref();
    this.#response.once('drain', () => {
      clearTimeout(this.#stuck);
      this.#stuck = undefined;
    });
  }
}
