import { constants, type ServerHttp2Stream } from 'node:http2';
import type { ServerResponse } from 'node:http';

const watched = new WeakSet<ServerHttp2Stream>();

/**
 * Destroys the HTTP/2 stream of a response once its client has reset it. Node does that itself, but not where a reset without an error comes between two
 * writes: it says `aborted` then, and never `close`, of the stream nor of its session, even when the connection has gone. Whoever waits for that,
 * such as Nest with server-sent events, would wait for ever.
 */
export function destroyOnceReset({ stream }: ServerResponse & { readonly stream?: ServerHttp2Stream }): void {
  if (!stream || watched.has(stream)) return;
  watched.add(stream);
  // Node is given the time to do it.
  const destroy = (): void => void setImmediate(() => isForgotten(stream) && stream.destroy());
  if (stream.aborted) destroy();
  else stream.once('aborted', destroy);
}

/** Whether nothing can be sent on it any more: one that the app itself closes still sends what it was given. */
function isForgotten(stream: ServerHttp2Stream): boolean {
  return !stream.destroyed && stream.state.state === constants.NGHTTP2_STREAM_STATE_IDLE;
}
