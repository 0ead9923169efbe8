import type { ServerResponse } from 'node:http';
import type { ServerHttp2Stream } from 'node:http2';

/**
 * Returns the stream of a response of HTTP/2. It alone reports the end of a `HEAD` request that was cancelled. On HTTP/1
 * a field of that name is the app's own.
 */
export function http2StreamOf(response: ServerResponse): ServerHttp2Stream | undefined {
  return 'createPushResponse' in response ? (response as { stream?: ServerHttp2Stream }).stream : undefined;
}
