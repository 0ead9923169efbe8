import { detailOf } from './lock.error.js';

/** The longest foreign text in a message, in characters. */
const LONGEST = 60;

/**
 * The characters that JSON doesn't escape, but that terminals or log collectors interpret: DEL, C1, line separators,
 * direction marks.
 */
const CONTROLS = /[\u007F-\u009F\u2028\u2029\u200E\u200F\u202A-\u202E\u2066-\u2069]/g;

const SCHEME = /^[a-z][\w+.-]*:\/\//i;

/** Quotes a text, so that nothing in it breaks its log line. */
export function quoted(text: string): string {
  return json(text);
}

/** Writes a value as JSON, without a character that a terminal acts on. */
export function json(value: unknown): string {
  return JSON.stringify(value).replace(CONTROLS, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Writes a text without quotes, and without a character that a terminal acts on. */
export const unquoted = (text: string): string => json(text).slice(1, -1);

/** Quotes a text of any length, cut off where it is too long. */
export function quotedStart(text: string, longest = LONGEST): string {
  return quoted(text.length > longest ? `${text.slice(0, longest)}…` : text);
}

/**
 * Shows a wrong value in a message, in one short line. Of an object it shows only the class, because it may hold a
 * password. Never throws.
 */
export function shown(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return quotedStart(withoutLogin(value));
    case 'bigint':
      return `${start(String(value))}n`;
    case 'symbol':
      return quotedStart(String(value)).slice(1, -1);
    case 'function':
      return 'a function';
    case 'object':
      return value === null ? 'null' : shownObject(value);
    default:
      return String(value);
  }
}

/**
 * Leaves out of a text what can be a user and a password, if it looks like a URL or a part of one: all in front of the
 * last "@", because a password may have any character. The query of a URL may hold a password, too.
 */
export function withoutLogin(text: string): string {
  const scheme = SCHEME.exec(text)?.[0] ?? '';
  if (scheme !== '' && text.includes('?')) return `${scheme}…`;
  const [end, colon] = [text.lastIndexOf('@'), text.indexOf(':')];
  return colon >= 0 && colon < end ? `${scheme}…${text.slice(end)}` : text;
}

/** Shows an error of foreign code in one short line. Never throws. */
export function shownError(error: unknown): string {
  try {
    return error instanceof Error ? quotedStart(String(detailOf(error)), 200) : shown(error);
  } catch {
    return "an error that can't be read";
  }
}

const start = (text: string): string => (text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text);

/**
 * Reads the class from the prototype, because a client's JSON can have any `constructor`. A Proxy may throw at any
 * access.
 */
function shownObject(value: object): string {
  try {
    if (Array.isArray(value)) return 'an array';
    const prototype = Object.getPrototypeOf(value) as { readonly constructor?: { readonly name?: unknown } } | null;
    if (prototype === null) return 'an object (without a class)';
    const name = prototype.constructor?.name;
    return typeof name === 'string' && /^[\p{ID_Start}$_][\p{ID_Continue}$]{0,59}$/u.test(name)
      ? `an object (${name})`
      : 'an object';
  } catch {
    return "an object that can't be read";
  }
}

/** The most keys that a message names. */
const MOST_KEYS = 5;

/**
 * Names keys, and the caller they are for, in the detail of an error: `lock "account:42"`, `locks "account:1",
 * "account:2" for "Bank.transfer"`.
 */
export function lockNames(keys: readonly string[], label?: string): string {
  const named = keys.slice(0, MOST_KEYS).map(quoted).join(', ');
  const more = keys.length > MOST_KEYS ? ` and ${keys.length - MOST_KEYS} more` : '';
  return `${keys.length === 1 ? 'lock' : 'locks'} ${named}${more}${label === undefined ? '' : ` for ${quoted(label)}`}`;
}
