import { checkedTraceparent } from '../store/traceparent.js';
import type { Processes } from './processes.js';

/**
 * The kind of the question for the trace of a lock, which is about its token. A question of its own, and no `describe`:
 * whose token is shown to nobody may go on handing its lock off in its process.
 */
const QUESTION = 'trace';

/** Answers other processes. @param own returns the trace of a lock that this process holds */
export function answerTraces(processes: Processes, own: (token: string) => string | undefined): void {
  processes.on(QUESTION, (about) => (typeof about === 'string' ? (own(about) ?? null) : null));
}

/**
 * Asks the process of a token for the trace of its lock. Never rejects; undefined when it does not answer in time, or
 * has no trace.
 */
export async function holderTrace(processes: Processes, token: string): Promise<string | undefined> {
  const source = token.slice(0, token.lastIndexOf('.'));
  if (!source) return undefined;
  const reply = await processes.ask(source, { kind: QUESTION, about: token });
  return typeof reply === 'object' ? checkedTraceparent(reply.answer) : undefined;
}
