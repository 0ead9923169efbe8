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

export function openEvents(wanted: Wanted): EventSource {
  return new EventSource(addressOf('events', wanted));
}

/** @throws Refused when the app answers with anything else; TypeError when it does not answer. */
export async function fetchSnapshot(wanted: Wanted, signal: AbortSignal): Promise<PageSnapshot> {
  const timeout = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  return jsonOf(await fetch(addressOf('snapshot', wanted), { cache: 'no-store', signal: timeout }));
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

function addressOf(route: string, { filter, key }: Wanted): URL {
  const url = new URL(route, BASE);
  if (filter !== '') url.searchParams.set('filter', filter);
  if (key !== '') url.searchParams.set('key', key);
  return url;
}

/** A redirect to a login page ends in HTML with status 200, which is a refusal, too. */
async function jsonOf<Body>(response: Response): Promise<Body> {
  const isJson = response.headers.get('content-type')?.includes('json') ?? false;
  if (response.ok && isJson) return (await response.json()) as Body;
  if (!isJson) throw new Refused(response.ok ? 401 : response.status, '');
  const { message } = (await response.json()) as { message?: unknown };
  throw new Refused(response.status, typeof message === 'string' ? message : '');
}
