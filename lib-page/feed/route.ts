/**
 * Where the page is. It stands behind the `#` of the address, so that it can be shared, and so that keys, which can name
 * customers, get into no access log.
 */
export interface Route {
  readonly view: View;
  /** The key of the view `key`. */
  readonly key: string;
  /** The text that rows must contain. */
  readonly filter: string;
}

export const VIEWS = ['locks', 'waits', 'times', 'lost', 'processes'] as const;
/** The views whose rows the filter chooses. */
const FILTERED: readonly View[] = ['locks', 'lost'];
export type View = (typeof VIEWS)[number] | 'key';

/** What `encodeURIComponent` does not take. */
const LONE_SURROGATES = /\p{Surrogate}/gu;

/** Reads a hash such as `#/key/account%3A42` or `#/lost?filter=account`. Anything unknown is the first view. */
export function parseRoute(hash: string): Route {
  const [path = '', query = ''] = splitAt(hash.replace(/^#\/?/, ''), '?');
  const [name = '', rest = ''] = splitAt(path, '/');
  const filter = new URLSearchParams(query).get('filter') ?? '';
  if (name === 'key') return { view: 'key', key: decoded(rest), filter };
  return { view: VIEWS.find((view) => view === name) ?? 'locks', key: '', filter };
}

/** Says which rows a place shows; a view that has no filter keeps it for the others. */
export function wantedAt({ view, key, filter }: Route): { filter: string; key: string } {
  return { key, filter: FILTERED.includes(view) ? filter : '' };
}

/** Whether a place asks for a filter. From a key it leads back to the locks. */
export function hasFilter({ view }: Route): boolean {
  return view === 'key' || FILTERED.includes(view);
}

/** Writes the hash of a place. */
export function hashOf({ view, key = '', filter = '' }: Partial<Route> & Pick<Route, 'view'>): string {
  const path =
    view === 'key' ? `key/${encodeURIComponent(key.replace(LONE_SURROGATES, '\ufffd'))}` : view === 'locks' ? '' : view;
  return `#/${path}${filter === '' ? '' : `?${new URLSearchParams({ filter }).toString()}`}`;
}

function splitAt(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
