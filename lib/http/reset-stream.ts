import type { ServerHttp2Stream } from 'node:http2';
import type { ServerResponse } from 'node:http';
import { atRoot } from '../clock/root-context.js';
import { ChurnMap } from '../collections/churn-map.js';
import { http2StreamOf } from './http2-stream.js';

const CHECK_EVERY_MS = 500;

/** `constants.NGHTTP2_STREAM_STATE_IDLE` of `node:http2`: to load that module takes each app 1.5 ms. */
const STATE_IDLE = 1;

/** The HTTP/2 streams of running requests. */
const open = new ChurnMap<ServerHttp2Stream, true>();
let timer: NodeJS.Timeout | undefined;

/**
 * Closes an HTTP/2 response whose client has gone, where Node leaves it open.
 *
 * Node destroys the stream of a response that its client has reset, except where a reset without an error comes before
 * a write or the end has been sent: then neither the stream nor its session ever emits `close`, even when the
 * connection has gone, and whatever waits for it, such as Nest with server-sent events, would wait for ever. No event
 * reports this case, so a timer looks for it.
 *
 * A response of HTTP/1 says whether it is closed, and whether it has been sent. One of HTTP/2 does not say the one, and
 * says that it has been sent although it was cut off, so a `pipeline()` or `finished()` that begins later would wait for
 * ever, too.
 */
export function followStream(response: ServerResponse): void {
  const stream = http2StreamOf(response);
  if (!stream || open.has(stream)) return;
  const closed = (): void => {
    open.delete(stream);
    tell(response, 'closed', true);
    if (stream.aborted) tell(response, 'writableFinished', false);
  };
  if (stream.destroyed) return closed();
  open.set(stream, true);
  stream.once('close', closed);
  timer ??= atRoot(() => setInterval(destroyReset, CHECK_EVERY_MS).unref());
}

function tell(response: ServerResponse, field: 'closed' | 'writableFinished', value: boolean): void {
  Reflect.defineProperty(response, field, { value, configurable: true, writable: true });
}

function destroyReset(): void {
  for (const stream of open.keys()) if (isReset(stream)) stream.destroy();
  if (open.size > 0) return;
  clearInterval(timer);
  timer = undefined;
}

/** Tells whether there is something to send that HTTP/2, which has forgotten the stream, will never send. */
function isReset(stream: ServerHttp2Stream): boolean {
  return stream.closed && !stream.writableFinished && stream.state.state === STATE_IDLE;
}
