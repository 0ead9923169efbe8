import type { Granted, LockStore } from '../../../lib/store/lock-store.js';
import { deferred, type Deferred } from '../deferred.js';
import type { Ears, Message } from './lock-model-answers.js';

/** What a process was told. */
export type Heard = Message & Partial<Pick<Granted, 'fence'>>;

/** One process, with its own store or with a part in a shared one. */
export class ProgramProcess {
  readonly source: string;
  readonly store: LockStore;
  /** What the ears of its waiters are, if they still wait. */
  readonly ears: 'hears' | 'deaf';
  readonly heard: Heard[] = [];
  /** Tokens that it still knows. */
  readonly known = new Set<string>();
  isAlive = true;
  readonly #markers = new Map<string, Deferred>();

  constructor(source: string, store: LockStore, ears: 'hears' | 'deaf' = 'hears') {
    this.source = source;
    this.store = store;
    this.ears = ears;
    const tell = (message: Heard) => this.isAlive && message.token.startsWith(`${source}.`) && this.heard.push(message);
    store.listen({
      source,
      granted: (token, { fence, contended }) => {
        tell({ what: 'granted', token, fence, contended });
        return this.isAlive && this.known.has(token);
      },
      contended: (token) => {
        const marker = this.#markers.get(token);
        if (marker) marker.resolve();
        else tell({ what: 'contended', token });
      },
      forceReleased: (token) => tell({ what: 'lost', token }),
      describe: () => undefined,
      answer: () => undefined,
      offered: () => false,
      resync: () => undefined,
    });
  }

  /** Resolves when it hears this marker, and so all that was said before. */
  hears(marker: string): Promise<void> {
    const heard = deferred();
    this.#markers.set(marker, heard);
    return heard.promise.finally(() => this.#markers.delete(marker));
  }
}

/** Where programs are run: processes that share locks. */
export interface ProgramWorld {
  readonly processes: readonly ProgramProcess[];
  /** Whether its waiters can't stand still or be gone, unless they say so. */
  readonly trustsWaiters: boolean;
  /** The last of all fences that were given, also in programs before. */
  lastFence: number;
  /** Begins anew, with nothing locked. */
  begin(): Promise<void>;
  end(): Promise<void>;
  /** What becomes of a waiter of a process, when it is its turn. */
  ears(process: ProgramProcess, token: string): Ears;
  /** Time passes, in which nobody does anything; that of the queues only when it is told so. */
  pass(ms: number, ofQueues?: boolean): Promise<void>;
  /** Kills a process; another one takes its place. */
  crash(index: number): Promise<void>;
  /** Resolves when all have heard all that was said so far, and have answered it. */
  settle(): Promise<void>;
  /** Another tool deletes a key, where there are other tools. */
  lose(key: string): Promise<boolean>;
  /** The note of the last fence is lost. */
  forgetFences(): Promise<void>;
  /** What is left of locks and queues. */
  leftovers(): Promise<readonly string[]>;
}

/** How many processes a world has. */
export const PROCESSES = 3;
