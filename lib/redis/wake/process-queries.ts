import { LONGEST_ANSWER, type ProcessQuestion, type ProcessReply } from '../../store/process-question.js';
import type { Questions } from './questions.js';

/** How long to wait for the answer of a process, in ms. */
const PATIENCE_MS = 500;

/** A question as it travels. */
export interface AskedQuestion extends ProcessQuestion {
  /** The source of the process that is asked: one channel may be that of several. */
  readonly to: string;
  /** The channel for the answer. */
  readonly replyTo: string;
  /**
   * The database of the locks that it is about: channels are those of all databases. Undefined in a question of an
   * older version.
   */
  readonly database: number | undefined;
}

/** Asks other processes questions of any kind, and answers theirs. */
export class ProcessQueries {
  readonly #questions: Questions;

  constructor(questions: Questions) {
    this.#questions = questions;
  }

  /** Asks the process that listens on a channel. Never rejects. */
  async ask(channel: string, question: AskedQuestion): Promise<ProcessReply> {
    const json = JSON.stringify(question);
    const outcome = await this.#questions.ask(channel, PATIENCE_MS, (id) => `ask ${id} ${json}`);
    return typeof outcome === 'object' ? { answer: answerOf(outcome.text) } : outcome;
  }

  /** Says that this process has nothing to do with the database of a question. */
  answerElsewhere(id: string, replyTo: string): void {
    this.#questions.reply(replyTo, `elsewhere ${id}`);
  }

  /** Answers a question of another process. An answer that is too long is left out. */
  answer(id: string, replyTo: string, answer: unknown): void {
    const json = JSON.stringify(answer) ?? '';
    this.#questions.reply(replyTo, `answer ${id} ${json.length > LONGEST_ANSWER ? '' : json}`);
  }
}

/** Reads a question of another process. Returns undefined for what is none, because every client can publish. */
export function askedQuestion(json: string): AskedQuestion | undefined {
  const { kind, about, to, replyTo, database } = (parsed(json) ?? {}) as Record<keyof AskedQuestion, unknown>;
  if (![kind, to, replyTo].every((text) => typeof text === 'string')) return undefined;
  return { kind, about, to, replyTo, database: Number.isInteger(database) ? database : undefined } as AskedQuestion;
}

const answerOf = (json: string): unknown => (json === '' ? undefined : parsed(json));

/** Parses JSON of a length that is allowed. Returns undefined for anything else. */
function parsed(json: string): unknown {
  if (json.length > 2 * LONGEST_ANSWER) return undefined;
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
