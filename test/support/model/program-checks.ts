import { isDeepStrictEqual } from 'node:util';
import { expect } from '@jest/globals';
import {
  fenceCountFor,
  type AcquireCommand,
  type Granted,
  type Busy,
  type KeyView,
} from '../../../lib/store/lock-store.js';
import type { Message, ModelAnswer } from './lock-model-answers.js';
import { permits } from './lock-model-key.js';
import type { LockModel } from './lock-model.js';
import { KEYS } from './lock-program.js';
import type { Callers } from './program-callers.js';
import type { Heard, ProgramWorld } from './program-world.js';

/** Rounds a time up to 2 s: all times of a program are a multiple of that, and the real ones a little less. */
const about = (ms: number) => Math.ceil(ms / 2000) * 2000;

/** As `toEqual`, which is slow, and hardly ever has anything to say. */
export function same(actual: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(actual, expected)) expect(actual).toEqual(expected);
}

function isAbove(fence: number, last: number): void {
  if (fence <= last) throw new Error(`The fence ${fence} came after ${last}.`);
}

/** Compares what a store says with the model; and sees by itself that no promise is broken. */
export class ProgramChecks {
  readonly #world: ProgramWorld;
  readonly #model: LockModel;
  readonly #callers: Callers;
  /** The last fence that was answered, and all that were given since everything was settled. */
  #lastAnswered: number;
  #given: { readonly from: number; readonly to: number }[] = [];
  readonly #holders = new Map<string, readonly string[]>();

  constructor(world: ProgramWorld, model: LockModel, callers: Callers) {
    this.#world = world;
    this.#model = model;
    this.#callers = callers;
    this.#lastAnswered = world.lastFence;
  }

  answer(
    { queue }: AcquireCommand,
    actual: Granted | Busy | 'other permits' | undefined,
    expected: ModelAnswer | undefined,
  ): void {
    if (typeof actual !== 'object') return same(actual, expected);
    const { fence } = actual;
    if (actual.granted) {
      const { fenceCount = 1, contended } = actual;
      this.#sameCounts({ granted: true, contended }, expected);
      isAbove(fence, this.#lastAnswered);
      this.#give(fence, fenceCount);
      this.#lastAnswered = this.#given.at(-1)!.to;
      return;
    }
    const { holder, ahead, leaseLeftMs } = actual;
    const known = typeof expected === 'object' && !expected.granted && expected.holders.includes(holder);
    const rounded =
      typeof expected === 'object' && !expected.granted
        ? { ...expected, leaseLeftMs: about(expected.leaseLeftMs) }
        : expected;
    this.#sameCounts(
      { granted: false, holders: known ? expected.holders : holder, ahead, leaseLeftMs: about(leaseLeftMs) },
      rounded,
    );
    if (!queue) return;
    // Whoever is given the lock later must see that by its fence.
    isAbove(fence + 1, this.#lastAnswered);
    this.#lastAnswered = fence;
  }

  /** As `same`; but who is silent may still be counted. */
  #sameCounts(actual: unknown, expected: unknown): void {
    if (this.#model.isUntidy) same(uncounted(actual), uncounted(expected));
    else same(actual, expected);
  }

  /** To be called when everything has been answered and heard. */
  async settled(): Promise<void> {
    this.#messages();
    this.#fences();
    for (const key of KEYS) await this.#key(key);
    if (this.#model.isEmpty && !this.#model.isUntidy) same(await this.#world.leftovers(), []);
  }

  #messages(): void {
    const toldTo = (source: string) => this.#model.messages.filter(({ token }) => token.startsWith(`${source}.`));
    for (const { source, ears, heard } of this.#world.processes) {
      this.#sameCounts(inOrder(heard.map(withoutFence)), ears === 'hears' ? inOrder(toldTo(source)) : []);
      for (const { what, token, fence } of heard) if (what === 'granted') this.#give(fence!, fenceCountFor(token));
      heard.length = 0;
    }
    this.#model.messages.length = 0;
  }

  #give(fence: number, fenceCount: number): void {
    this.#given.push({ from: fence, to: fence + fenceCount - 1 });
  }

  /** Each is larger than all before, also than those that a run keeps for itself. */
  #fences(): void {
    for (const { from, to } of this.#given.sort((one, other) => one.from - other.from)) {
      isAbove(from, this.#world.lastFence);
      this.#world.lastFence = to;
    }
    this.#given = [];
    this.#lastAnswered = this.#world.lastFence = Math.max(this.#world.lastFence, this.#lastAnswered);
  }

  async #key(key: string): Promise<void> {
    const { store } = this.#world.processes[0]!;
    const [view, locked] = await Promise.all([store.inspect(key), store.isLocked(key)]);
    same({ key, ...(view && comparable(view)) }, { key, ...comparable(this.#model.inspect(key)) });
    same(locked, view !== undefined);
    if (view) this.#promises(key, view);
    this.#holders.set(key, view?.holders.map(({ token }) => token) ?? []);
  }

  /** What is promised, seen without the model. */
  #promises(key: string, { sharing, holders, waiters }: KeyView): void {
    same({ key, inside: Math.min(holders.length, permits(sharing)) }, { key, inside: holders.length });
    for (const { token } of holders.filter(({ token }) => !this.#holders.get(key)?.includes(token))) {
      const arrival = this.#arrivalOf(token) ?? 0;
      const passedOver = waiters.filter((waiter) => (this.#arrivalOf(waiter.token) ?? Infinity) < arrival);
      same({ letIn: token, before: passedOver }, { letIn: token, before: [] });
    }
  }

  /**
   * Where it stands among all who asked, if that is sure: of several keys, it asks for the second when it has the
   * first.
   */
  #arrivalOf(token: string): number | undefined {
    const { command, process, arrival } = this.#callers.of(token);
    return command.keys.length > 1 || this.#world.ears(process, token) !== 'hears' ? undefined : arrival;
  }
}

/** An answer or messages, without what depends on how many wait. */
function uncounted(value: unknown): unknown {
  if (Array.isArray(value)) return value.filter(({ what }: Message) => what !== 'contended').map(uncounted);
  return value && typeof value === 'object' ? { ...value, ahead: 0, contended: false } : value;
}

const withoutFence = ({ what, token, contended }: Heard): Message =>
  what === 'granted' ? { what, token, contended } : { what, token };

/** What one call brings about for several holders or keys is heard of in any order. */
const inOrder = (messages: readonly Message[]): readonly Message[] =>
  [...messages].sort((one, other) => `${one.token} ${one.what}`.localeCompare(`${other.token} ${other.what}`));

/** A view in which the order of holders and the last ms do not matter. */
function comparable(view: KeyView | undefined): object | undefined {
  if (!view) return undefined;
  const holders = view.holders.map(({ token, leaseLeftMs }) => `${token} for ${about(leaseLeftMs)} ms`).sort();
  return { ...view, holders };
}
