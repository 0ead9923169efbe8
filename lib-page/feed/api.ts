import type { PageSnapshot, UnlockReply, UnlockRequest } from '../../lib/page/page-snapshot.js';

/** The path of the page, from which its script came; it ends in a slash. */
const BASE = new URL('..', import.meta.url);
const TIMEOUT_MS = 10_000;

/** Which rows are wanted: those that contain a text; and one key in full. */
export interface Wanted {
  readonly filter: string;
  readonly key: string;
}

/** Tells that the app answered, but not with what was asked for. */
export class Refused extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** An event of the stream. */
export interface ServerEvent {
  readonly type: string;
  readonly data: string;
}

/**
 * Reads the events of the app until the stream ends. An `EventSource` of the browser sends no headers.
 *
 * @throws Refused when the app answers with anything else; TypeError when it does not answer, or is gone.
 */
export async function readEvents(
  wanted: Wanted,
  signal: AbortSignal,
  onEvent: (event: ServerEvent) => void,
): Promise<void> {
  const headers = { ...headersFor(wanted), accept: 'text/event-stream' };
  const response = await fetch(new URL('events', BASE), { headers, cache: 'no-store', signal });
  if (!response.ok || !response.body) throw new Refused(response.status, '');
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let unread = '';
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const texts = (unread + part.value).split('\n\n');
    unread = texts.pop()!;
    for (const text of texts) onEvent(eventIn(text));
  }
}

/** Each of ours has a type and one line of data. */
function eventIn(text: string): ServerEvent {
  const [, type = '', data = ''] = /^event: ([^\n]*)\ndata: ([^\n]*)$/.exec(text) ?? [];
  return { type, data };
}

/** @throws Refused when the app answers with anything else; TypeError when it does not answer. */
export async function fetchSnapshot(wanted: Wanted, signal: AbortSignal): Promise<PageSnapshot> {
  const timeout = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  const headers = headersFor(wanted);
  return jsonOf(await fetch(new URL('snapshot', BASE), { headers, cache: 'no-store', signal: timeout }));
}

/** @throws Refused with what the app says; TypeError when it does not answer. */
export async function unlock(request: UnlockRequest): Promise<UnlockReply> {
  const response = await fetch(new URL('unlock', BASE), {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-lock-page': 'unlock' },
    body: JSON.stringify(request),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  return jsonOf(response);
}

/** A header, because access logs have the query of an address, and keys can name customers. */
function headersFor({ filter, key }: Wanted): Record<string, string> {
  return { 'x-lock-page-view': new URLSearchParams({ filter, key }).toString() };
}

/** A redirect to a login page ends in HTML with status 200, which is a refusal, too. */
async function jsonOf<Body>(response: Response): Promise<Body> {
  const isJson = response.headers.get('content-type')?.includes('json') ?? false;
  if (response.ok && isJson) return (await response.json()) as Body;
  if (!isJson) throw new Refused(response.ok ? 401 : response.status, '');
  const { message } = (await response.json()) as { message?: unknown };
  throw new Refused(response.status, typeof message === 'string' ? message : '');
}
