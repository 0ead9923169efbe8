import { randomBytes } from 'node:crypto';
import { afterRunning } from '../../clock/running-time.js';
import type { Publish } from './echo-check.js';

/** A reply that has arrived, as text, or why there is none: see `ProcessReply`. */
export type QuestionOutcome = { readonly text: string } | 'silent' | 'gone' | 'unavailable';

/** Publishes questions to other processes, and finds out to which of them a reply belongs. */
export class Questions {
  readonly #publish: Publish;
  readonly #onSilence: () => void;
  readonly #open = new Map<string, (outcome: QuestionOutcome) => void>();

  /** @param onSilence called for each question without a reply: the subscription of this process may be dead */
  constructor(publish: Publish, onSilence: () => void) {
    this.#publish = publish;
    this.#onSilence = onSilence;
  }

  /**
   * Puts a question to the process that listens on a channel. Never rejects.
   *
   * @param patienceMs how long to wait for the reply. A stall of this process does not count
   * @param message makes its text. It gets the id to reply to: a random one, so that nobody can reply who has not read
   *   the question
   */
  ask(channel: string, patienceMs: number, message: (id: string) => string): Promise<QuestionOutcome> {
    const id = randomBytes(9).toString('base64url');
    return new Promise((resolve) => {
      let isPublished = false;
      const end = (outcome: QuestionOutcome) => {
        if (!this.#open.delete(id)) return;
        stopWaiting();
        resolve(outcome);
      };
      const stopWaiting = afterRunning(patienceMs, () => {
        if (!this.#open.has(id)) return;
        this.#onSilence();
        end(isPublished ? 'silent' : 'unavailable');
      });
      this.#open.set(id, end);
      this.#publish(channel, message(id)).then(
        (receivers) => {
          isPublished = true;
          if (receivers === 0) end('gone');
        },
        () => end('unavailable'),
      );
    });
  }

  /** Publishes a reply. */
  reply(replyTo: string, message: string): void {
    this.#publish(replyTo, message).catch(() => undefined);
  }

  /** Takes the reply to a question. Ignores one that nobody waits for. */
  replied(id: string, text: string): void {
    this.#open.get(id)?.({ text });
  }

  /** Notes that the process which was asked is none of those that were meant. */
  repliedElsewhere(id: string): void {
    this.#open.get(id)?.('gone');
  }

  close(): void {
    for (const done of this.#open.values()) done('unavailable');
  }
}
