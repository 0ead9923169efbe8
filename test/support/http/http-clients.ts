import { type EventEmitter, once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect, constants } from 'node:http2';

/** A request that has been sent, on a connection of its own. */
export interface SentRequest {
  /** The status of its answer. Rejects when it was cancelled before. */
  readonly status: Promise<number>;
  /** Resolves when the answer has begun to come. */
  readonly begun: Promise<unknown>;
  /** Resolves when the whole answer has come, or the request was cancelled. */
  readonly ended: Promise<unknown>;
  /** Goes away without waiting for the answer. */
  cancel(): void;
}

/** Sends a request to `http://127.0.0.1:port`. */
export type SendRequest = (port: number, method: string, path: string) => SentRequest;

export const sendHttp1: SendRequest = (port, method, path) => {
  const sent = request({ host: '127.0.0.1', port, path, method, agent: false }).on('error', () => undefined);
  const response = once(sent, 'response').then(([response]) =>
    (response as IncomingMessage).on('error', () => undefined),
  );
  const status = response.then(({ statusCode }) => statusCode!);
  const begun = response.then((response) => once(response, 'data'));
  const ended = closed(sent);
  sent.end();
  return quiet({ status, begun, ended, cancel: () => sent.destroy() });
};

/** What it cancels is the one request, or its connection. */
export function sendHttp2(
  cancels: 'request' | 'connection',
): (...request: Parameters<SendRequest>) => SentRequest & { readonly text: Promise<string> } {
  return (port, method, path) => {
    const session = connect(`http://127.0.0.1:${port}`).on('error', () => undefined);
    const sent = session.request({ ':method': method, ':path': path }).on('error', () => undefined);
    const status = once(sent, 'response').then(([headers]) => (headers as { ':status': number })[':status']);
    const chunks: Buffer[] = [];
    sent.on('data', (chunk: Buffer) => chunks.push(chunk));
    const begun = once(sent, 'data');
    const ended = closed(sent).then(() => session.close());
    sent.end();
    const text = ended.then(() => Buffer.concat(chunks).toString());
    return quiet({
      status,
      begun,
      ended,
      text,
      cancel: () => (cancels === 'request' ? sent.close(constants.NGHTTP2_CANCEL) : session.destroy()),
    });
  };
}

/** Unlike `once`, it does not mind errors. */
const closed = (sent: EventEmitter): Promise<unknown> => new Promise((resolve) => sent.once('close', resolve));

/** A test may look at only some of its promises. */
function quiet<Sent extends SentRequest>(sent: Sent): Sent {
  for (const promise of [sent.status, sent.begun, sent.ended]) promise.catch(() => undefined);
  return sent;
}
