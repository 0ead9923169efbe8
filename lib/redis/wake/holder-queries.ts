import type { LockDetails } from '../../store/lock-store.js';
import { checkedTraceparent } from '../../store/traceparent.js';
import type { Questions } from './questions.js';

/** How long to wait for the reply of another process, in ms. A stalled process does not reply. */
export const PATIENCE_MS = 250;

/** Asks other processes what they know about the locks that they hold, and replies to their questions. */
export class HolderQueries {
  readonly #questions: Questions;

  constructor(questions: Questions) {
    this.#questions = questions;
  }

  /**
   * Asks the process that listens on a channel; it replies on `replyTo`. Resolves with undefined when no reply comes in
   * time.
   */
  async ask(token: string, channel: string, replyTo: string): Promise<LockDetails | undefined> {
    const message = (id: string) => `describe ${token} ${id} ${replyTo}`;
    const outcome = await this.#questions.ask(channel, PATIENCE_MS, message);
    return typeof outcome === 'object' ? detailsOf(outcome.text) : undefined;
  }

  /** Replies to a question of another process. */
  reply(question: string, replyTo: string, details: LockDetails): void {
    this.#questions.reply(replyTo, `described ${question} ${JSON.stringify(details)}`);
  }
}

/** Reads details. Returns undefined for what is none, because every client can publish. */
function detailsOf(json: string): LockDetails | undefined {
  try {
    const { fence, acquiredAt, label, traceparent } = JSON.parse(json) as Record<keyof LockDetails, unknown>;
    if (!Number.isSafeInteger(fence) || !Number.isSafeInteger(acquiredAt)) return undefined;
    return {
      fence: fence as number,
      acquiredAt: acquiredAt as number,
      label: typeof label === 'string' ? label : undefined,
      traceparent: checkedTraceparent(traceparent),
    };
  } catch {
    return undefined;
  }
}
