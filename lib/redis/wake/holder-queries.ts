import { waitFor } from '../../clock/wait-for.js';
import { now } from '../../clock/deadline.js';
import type { LockDetails } from '../../store/lock-store.js';
import type { Publish } from './echo-check.js';

/** How long to wait for the reply of another process, in ms. A stalled process does not reply. */
export const PATIENCE_MS = 250;

/** Asks other processes what they know about the locks that they hold, and replies to their questions. */
export class HolderQueries {
  readonly #publish: Publish;
  readonly #onSilence: () => void;
  readonly #open = new Map<string, (details: LockDetails | undefined) => void>();
  #last = 0;

  /** @param onSilence called for each question without a reply: the subscription of this process may be dead */
  constructor(publish: Publish, onSilence: () => void) {
    this.#publish = publish;
    this.#onSilence = onSilence;
  }

  /**
   * Asks the process that listens on a channel; it replies on `replyTo`. Resolves with undefined when no reply comes in
   * time.
   */
  async ask(token: string, channel: string, replyTo: string): Promise<LockDetails | undefined> {
    const question = String(++this.#last);
    return waitFor<LockDetails | undefined>(
      now() + PATIENCE_MS,
      [],
      (done) => {
        this.#open.set(question, done);
        this.#publish(channel, `describe ${token} ${question} ${replyTo}`).then(
          (receivers) => receivers > 0 || done(undefined),
          () => done(undefined),
        );
      },
      () => this.#open.delete(question),
      () => void this.#onSilence(),
    );
  }

  /** Replies to a question of another process. */
  reply(question: string, replyTo: string, details: LockDetails): void {
    this.#publish(replyTo, `described ${question} ${JSON.stringify(details)}`).catch(() => undefined);
  }

  /** Takes the reply of another process. */
  replied(question: string, details: string): void {
    this.#open.get(question)?.(detailsOf(details));
  }

  close(): void {
    for (const done of this.#open.values()) done(undefined);
  }
}

/** Reads details. Returns undefined for what is none, because every client can publish. */
function detailsOf(json: string): LockDetails | undefined {
  try {
    const { fence, acquiredAt, label } = JSON.parse(json) as Record<keyof LockDetails, unknown>;
    if (!Number.isSafeInteger(fence) || !Number.isSafeInteger(acquiredAt)) return undefined;
    return {
      fence: fence as number,
      acquiredAt: acquiredAt as number,
      label: typeof label === 'string' ? label : undefined,
    };
  } catch {
    return undefined;
  }
}
