import type {
  FoundProcesses,
  LockStore,
  ProcessQuestion,
  ProcessReply,
  Unreached,
  UnreachedReason,
} from '../store/lock-store.js';
import { askProcessOf, processesOf } from '../store/processes-of.js';
import { partsOf } from './request/lock-token.js';

/** The most processes to ask at the same time: their replies must not pile up in the connection of this one. */
const AT_ONCE = 16;

/** The replies of all live processes to one question. */
export interface Answers {
  /** By the source of the process. Nothing in them is checked: any client of the server may publish. */
  readonly bySource: ReadonlyMap<string, unknown>;
  /** Who and what was not reached. */
  readonly unreached: readonly Unreached[];
}

/** Asks all live processes that share the store, and replies to their questions. One function replies to each kind. */
export class Processes {
  readonly #store: LockStore;
  /** The source of this process. */
  readonly own: string;
  readonly #answerers = new Map<string, (about: unknown) => unknown>();

  constructor(store: LockStore, own: string) {
    this.#store = store;
    this.own = own;
  }

  /**
   * Registers the function that replies to questions of one kind.
   *
   * @param answer gets what the question is about, of which nothing is checked. Returns what can become JSON, of at
   *   most `LONGEST_ANSWER` characters
   */
  on(kind: string, answer: (about: unknown) => unknown): void {
    this.#answerers.set(kind, answer);
  }

  /** Replies to a question. Undefined when this process does not know its kind, or the function for it throws. */
  answer({ kind, about }: ProcessQuestion): unknown {
    try {
      return this.#answerers.get(kind)?.(about);
    } catch {
      return undefined;
    }
  }

  /** Finds the live processes, this one first. Never rejects. */
  async find(): Promise<FoundProcesses> {
    const { sources, unreached } = await processesOf(this.#store);
    return { sources: [...new Set([this.own, ...sources])], unreached };
  }

  /** Asks one process. Never rejects. This process answers itself, without the store. */
  async ask(source: string, question: ProcessQuestion): Promise<ProcessReply> {
    return source === this.own ? { answer: this.answer(question) } : askProcessOf(this.#store, source, question);
  }

  /** Asks all live processes the same; or only those that were found before. Never rejects. */
  async askAll(question: ProcessQuestion, before?: FoundProcesses): Promise<Answers> {
    const found = before ?? (await this.find());
    const bySource = new Map<string, unknown>();
    const unreached = [...found.unreached];
    await forEachOf(found.sources, async (source) => {
      const reply = await this.ask(source, question);
      const problem = problemOf(source, reply);
      if (problem) unreached.push(problem);
      else if (typeof reply === 'object') bySource.set(source, reply.answer);
    });
    return { bySource, unreached };
  }
}

/** Does something for each of many processes, for some of them at the same time. */
export async function forEachOf<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const rest = items.values();
  const worker = async () => {
    for (const item of rest) await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

/** What to say of a process that gave no answer. Undefined if it did, or if there is no such process any more. */
export function problemOf(source: string, reply: ProcessReply): Unreached | undefined {
  if (reply === 'gone') return undefined;
  if (reply === 'silent') return unreachedProcess(source, 'silent');
  if (reply === 'unavailable') return unreachedProcess(source, 'unavailable');
  return reply.answer === undefined ? unreachedProcess(source, 'unsupported') : undefined;
}

const SAID: Record<'silent' | 'unavailable' | 'unsupported', string> = {
  silent: 'did not answer in time: it is stalled, stopped or overloaded, or its host has vanished.',
  unavailable: 'could not be asked: the store did not pass the question on.',
  unsupported: 'did not understand the question: it runs another version of nest-redis-lock.',
};

function unreachedProcess(source: string, reason: keyof typeof SAID & UnreachedReason): Unreached {
  const { host, pid, instance } = partsOf(`${source}.0`);
  const name = host === undefined ? source : `${host}:${pid}`;
  return { what: 'process', name, host, pid, instance, reason, message: `The process ${name} ${SAID[reason]}` };
}
