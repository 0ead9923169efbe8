import type { LockUnavailableError } from '../../errors/lock-unavailable.error.js';
import type { Busy, OwnedLock } from '../../store/lock-store.js';
import type { OtherPermits } from '../lua/locks.script.js';
import { bulk } from '../wire/resp.js';

const VERBS = [
  'try',
  'poll',
  'queue',
  'handoff',
  'unsubscribed',
  'release',
  'keep',
  'cancel',
  'reserve',
  'upgrade',
  'downgrade',
  'force',
  'shorten',
] as const;

/** What an operation does: see the locks script. */
export type Verb = (typeof VERBS)[number];

/** One operation of the locks script, and what to do with its reply. */
export interface LockOperation {
  readonly verb: Verb;
  readonly lock: OwnedLock;
  /** Which of the waiters of a key it is, where that matters: see `kindOf`. */
  readonly kind?: string;
  /** Whether it may have run before, in a call that failed as a whole. */
  resent?: boolean;
  done(reply: number | Busy | OtherPermits): void;
  failed(error: LockUnavailableError): void;
  /** Called when the server replies after the operation failed: it may have run. */
  repliedLate?(): void;
}

/** The kind of most locks. */
const PLAIN = 'exclusive';

const ENCODED = Object.fromEntries(VERBS.map((verb) => [verb, bulk(verb)])) as Record<Verb, string>;

/** Encodes what an operation does, and to how many keys. */
export function encodedVerb({ verb, lock: { keys }, kind = PLAIN }: LockOperation): string {
  return keys.length === 1 && kind === PLAIN ? ENCODED[verb] : bulk(`${verb} ${keys.length} ${kind}`);
}
