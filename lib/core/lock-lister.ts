import { detailOf } from '../errors/lock.error.js';
import { isKept, LONGEST_ANSWER, type LockStore, type Unreached } from '../store/lock-store.js';
import { ListedKeys, listedLock, mayHaveOthers, type ListedKey } from './listed-keys.js';
import { LIST, type ListQuestion } from './list/list-question.js';
import { readAnswer, readQuestion } from './list/list-wire.js';
import type { LockList } from './lock-list.js';
import { sourceOf } from './request/lock-token.js';
import type { OwnLocks } from './list/own-locks.js';
import { forEachOf, problemOf, type Processes } from './processes.js';

/** How many characters of keys a question names at most. */
const MOST_NAMED_CHARACTERS = LONGEST_ANSWER / 10;

interface LockListerParts {
  readonly store: LockStore;
  readonly processes: Processes;
  readonly ownLocks: OwnLocks;
}

/** Lists what all live processes hold and wait for: each says it itself, and no key is searched for. */
export class LockLister {
  readonly #store: LockStore;
  readonly #processes: Processes;

  constructor({ store, processes, ownLocks }: LockListerParts) {
    this.#store = store;
    this.#processes = processes;
    processes.on(LIST, (about) => {
      const question = readQuestion(about);
      return question && ownLocks.answer(question);
    });
  }

  /** Never rejects: what it could not reach is part of the list. */
  async list(question: ListQuestion): Promise<LockList> {
    const { sources, unreached } = await this.#processes.find();
    const round = new ListRound(this.#processes, sources, unreached);
    await round.ask(question);
    const keys = round.keys.oldest(question.limit);
    // Of a key that one process lists, another may have left out what is too young, or too much.
    if (question.olderThanMs > 0 || round.leftOut > 0)
      for (const portion of portionsOf(keys)) await round.ask({ ...question, olderThanMs: 0, keys: portion });
    await forEachOf(
      keys.filter((listed) => mayHaveOthers(listed)),
      (listed) => this.#findOthers(listed, round),
    );
    return {
      locks: keys.map(listedLock),
      total: round.keys.size + round.leftOut,
      unreached: [...round.unreached.values()],
    };
  }

  /** Asks the store for holders of a key that no process claims. */
  async #findOthers(listed: ListedKey, { unreached, answered }: ListRound): Promise<void> {
    // One that has answered names others that it has held for longer, or has got the lock since.
    const isOther = ({ token }: { readonly token: string }) => isKept(token) || !answered.has(sourceOf(token) ?? '');
    try {
      const view = await this.#store.inspect(listed.key);
      const others = view?.holders.filter(isOther) ?? [];
      listed.view = view && others.length > 0 ? { ...view, holders: others } : undefined;
    } catch (error) {
      const message = `The holders of some keys are not known. ${detailOf(error as Error)}`;
      unreached.set('store', { what: 'server', name: 'the store', reason: 'unavailable', message });
    }
  }
}

/** Asks the same processes once or several times, and collects what they say. */
class ListRound {
  readonly keys = new ListedKeys();
  /** By what it is about, each once. */
  readonly unreached = new Map<string, Unreached>();
  /** The processes that have said what they hold, each time they were asked. */
  readonly answered = new Set<string>();
  /** How many keys the processes have that they did not name, because of the limit. */
  leftOut = 0;
  readonly #processes: Processes;
  readonly #sources: readonly string[];
  /** Those that do not answer are not asked again. */
  readonly #lost = new Set<string>();

  constructor(processes: Processes, sources: readonly string[], unreached: readonly Unreached[]) {
    this.#processes = processes;
    this.#sources = sources;
    for (const one of unreached) this.unreached.set(`${one.name} ${one.reason}`, one);
  }

  async ask(question: ListQuestion): Promise<void> {
    await forEachOf(this.#sources, async (source) => {
      const leftOut = this.#lost.has(source) ? 0 : await this.#askOne(source, question);
      if (!question.keys) this.leftOut += leftOut;
    });
  }

  /** Takes all parts of the answer of a process, up to the limit. Returns how many keys it did not name. */
  async #askOne(source: string, question: ListQuestion): Promise<number> {
    let named = 0;
    for (let next = question.after; ;) {
      const limit = question.limit - named;
      const reply = await this.#processes.ask(source, { kind: LIST, about: { ...question, limit, after: next } });
      const answer = typeof reply === 'object' ? readAnswer(reply.answer) : undefined;
      if (!answer) {
        const problem = problemOf(source, typeof reply === 'object' ? { answer: undefined } : reply);
        this.#lost.add(source);
        this.answered.delete(source);
        if (problem) this.unreached.set(source, problem);
        return 0;
      }
      this.answered.add(source);
      for (const own of answer.keys) this.keys.add(source, own);
      named += answer.keys.length;
      next = answer.next;
      if (!next || answer.keys.length === 0 || named >= question.limit) return answer.total - answer.keys.length;
    }
  }
}

/** Splits keys into portions that fit into one question. */
function portionsOf(keys: readonly ListedKey[]): string[][] {
  const portions: string[][] = [];
  let characters = Infinity;
  for (const { key } of keys) {
    if (characters + key.length > MOST_NAMED_CHARACTERS) {
      portions.push([]);
      characters = 0;
    }
    portions.at(-1)!.push(key);
    characters += key.length;
  }
  return portions;
}
