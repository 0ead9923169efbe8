import { constants, type ServerHttp2Stream } from 'node:http2';
import type { ServerResponse } from 'node:http';

const LOOK_EVERY_MS = 500;

/** The HTTP/2 streams of requests that are being answered. */
const open = new Set<ServerHttp2Stream>();
let timer: NodeJS.Timeout | undefined;

/**
 * Destroys the HTTP/2 stream of a response when its client has reset it. Node does that itself, but not where a reset
 * without an error comes before a write or the end has been sent: it never says `close` then, of the stream nor of its
 * session, even when the connection has gone. Who waits for that, such as Nest with server-sent events, would wait for
 * ever. Nothing tells of it either, so we look.
 */
export function destroyOnceReset({ stream }: ServerResponse & { readonly stream?: ServerHttp2Stream }): void {
  if (!stream || stream.destroyed || open.has(stream)) return;
  open.add(stream);
  stream.once('close', () => open.delete(stream));
  timer ??= setInterval(look, LOOK_EVERY_MS).unref();
}

function look(): void {
  for (const stream of open) if (isReset(stream)) stream.destroy();
  if (open.size > 0) return;
  clearInterval(timer);
  timer = undefined;
}

/** Whether there is something to send that HTTP/2, which has forgotten the stream, will never send. */
function isReset(stream: ServerHttp2Stream): boolean {
  return stream.closed && !stream.writableFinished && stream.state.state === constants.NGHTTP2_STREAM_STATE_IDLE;
}
