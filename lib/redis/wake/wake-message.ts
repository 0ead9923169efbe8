import {
  FIRST_LEASE_MS,
  fenceCountFor,
  type Cancellation,
  type ForcedUnlock,
  type Granted,
} from '../../store/lock-store.js';
import { readKind } from '../wire/lock-kind.js';

/** What processes are told on their wake channels. */
export type WakeMessage =
  /** A waiter has the lock now. */
  | {
      readonly what: 'granted';
      readonly lock: Omit<Cancellation, 'keys'>;
      readonly grant: Granted;
      readonly name: string;
    }
  /** Somebody waits for the lock of this token; or it waits, and is to ask for it now. */
  | { readonly what: 'wanted' | 'called'; readonly token: string }
  /** The lock of this token was taken away by force. */
  | { readonly what: 'lost'; readonly token: string; readonly forced: ForcedUnlock }
  /** Somebody asks on a channel what is known of the lock of this token. */
  | { readonly what: 'describe'; readonly token: string; readonly question: string; readonly channel: string }
  /** The answer to a question, as JSON. */
  | { readonly what: 'described'; readonly question: string; readonly details: string };

/** Whoever may publish can say anything. What is no token or kind of ours must not get into a command: there, its length is counted in characters. */
const GRANTED = /^granted ([!-~]+) (\d{1,13}) ([!-~]+) (\d{1,16}) ([01]) ([^]+)$/;

/** Reads what the locks script and other processes publish. Undefined for anything else. */
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
  if (what === 'wanted' || what === 'called') return { what, token: words.join(' ') };
  if (what === 'describe') return { what, token: first, question: second, channel: words.slice(2).join(' ') };
  if (what === 'described') return { what, question: first, details: words.slice(1).join(' ') };
  return undefined;
}

/** Who and why as one word, for the locks script, which passes it on. */
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
