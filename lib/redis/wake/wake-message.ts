import {
  FIRST_LEASE_MS,
  fenceCountFor,
  type Cancellation,
  type ForcedUnlock,
  type Granted,
} from '../../store/lock-store.js';
import { readKind } from '../wire/lock-kind.js';

/** A message on the wake channel of a process. */
export type WakeMessage =
  /** The lock was handed to a waiter. */
  | {
      readonly what: 'granted';
      readonly lock: Omit<Cancellation, 'keys'>;
      readonly grant: Granted;
      readonly name: string;
    }
  /**
   * `contended`: another process waits for the lock of this token. `offered`: the waiter of this token should ask for
   * the lock now.
   */
  | { readonly what: 'contended' | 'offered'; readonly token: string }
  /** The lock of this token was released by force. */
  | { readonly what: 'lost'; readonly token: string; readonly forced: ForcedUnlock }
  /** Another process asks about the lock of this token; the reply goes to `channel`. */
  | { readonly what: 'describe'; readonly token: string; readonly question: string; readonly channel: string }
  /** Another process asks something else, as JSON. */
  | { readonly what: 'ask'; readonly question: string; readonly asked: string }
  /** The process that was asked uses another database. */
  | { readonly what: 'elsewhere'; readonly question: string }
  /** The reply to a question, as JSON. */
  | { readonly what: 'reply'; readonly question: string; readonly text: string };

/**
 * Checks each part, because any client may publish. A token or kind must be ASCII: in a command its length is counted
 * in characters.
 */
const GRANTED = /^granted ([!-~]+) (\d{1,13}) ([!-~]+) (\d{1,16}) ([01]) ([^]+)$/;

/** Reads a message of the locks script or of another process. Returns undefined for anything else. */
export function wakeMessage(text: string): WakeMessage | undefined {
  const granted = GRANTED.exec(text);
  if (granted) {
    const [, token, lease, kind, fence, others, name] = granted as unknown as [
      string,
      string,
      string,
      string,
      string,
      string,
      string,
    ];
    const lock = { token, leaseMs: Number(lease), ...readKind(kind) };
    const leaseMs = Math.min(lock.leaseMs, FIRST_LEASE_MS);
    return {
      what: 'granted',
      lock,
      name,
      grant: {
        granted: true,
        fence: Number(fence),
        fenceCount: fenceCountFor(token),
        contended: others === '1',
        leaseMs,
      },
    };
  }
  const [what, ...words] = text.split(' ');
  const [first = '', second = ''] = words;
  if (what === 'lost') return { what, token: words.slice(0, -1).join(' '), forced: readForced(words.at(-1)!) };
  if (what === 'contended' || what === 'offered') return { what, token: words.join(' ') };
  if (what === 'describe') return { what, token: first, question: second, channel: words.slice(2).join(' ') };
  if (what === 'ask') return { what, question: first, asked: words.slice(1).join(' ') };
  if (what === 'elsewhere') return { what, question: first };
  if (what === 'described' || what === 'answer')
    return { what: 'reply', question: first, text: words.slice(1).join(' ') };
  return undefined;
}

/** Encodes by whom and why a lock was released by force as one word, which the locks script passes on. */
export function forcedText({ by, reason }: ForcedUnlock): string {
  return encodeURIComponent(JSON.stringify({ by, reason }));
}

function readForced(text: string): ForcedUnlock {
  try {
    const { by, reason } = JSON.parse(decodeURIComponent(text)) as Record<string, unknown>;
    return { by: shortText(by), reason: shortText(reason) };
  } catch {
    return {};
  }
}

const shortText = (value: unknown): string | undefined => (typeof value === 'string' ? value.slice(0, 200) : undefined);
