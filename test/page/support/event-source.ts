import type { PageSnapshot } from '../../../lib/page/page-snapshot.js';

/** Reads a stream of server-sent events, as a browser does. */
export async function* events(response: Response): AsyncGenerator<{ readonly type: string; readonly data: string }> {
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const fields = Object.fromEntries(
        text
          .slice(0, end)
          .split('\n')
          .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)] as const),
      );
      text = text.slice(end + 2);
      if (fields['data'] !== undefined) yield { type: fields['event'] ?? 'message', data: fields['data'] };
    }
  }
}

/** Reads the snapshots of a stream until one of them fits. */
export async function snapshotThat(
  response: Response,
  fits: (snapshot: PageSnapshot) => boolean,
): Promise<PageSnapshot> {
  for await (const { data } of events(response)) {
    const snapshot = JSON.parse(data) as PageSnapshot;
    if (fits(snapshot)) return snapshot;
  }
  throw new Error('The stream has ended.');
}
