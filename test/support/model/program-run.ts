import { LockOptionsError } from 'nest-redis-lock';
import {
  ALIVE_MS,
  LOCAL_WAITERS_MARK,
  type AcquireCommand,
  type Granted,
  type Busy,
} from '../../../lib/store/lock-store.js';
import type { ModelAnswer } from './lock-model-answers.js';
import { LockModel } from './lock-model.js';
import type { Ask, ByCaller, Operation } from './lock-program.js';
import { Callers, type Caller } from './program-callers.js';
import { ProgramChecks, same } from './program-checks.js';
import type { ProgramProcess, ProgramWorld } from './program-world.js';

/** Who is counted as 9 may be anybody who ever asked; others have something, or wait. */
const ANYBODY = 9;

const KEEP_MS = 6_000;

/** When the longest of all leases is over. */
const LONGEST_LEASE_MS = 32_000;

/** Runs a program in a world, next to the model. Throws where they differ, and when a promise is broken. */
export class ProgramRun {
  readonly #world: ProgramWorld;
  readonly #model: LockModel;
  readonly #callers = new Callers();
  readonly #checks: ProgramChecks;
  /** Calls of a store that are under way; each answers with a look at its answer. */
  #calls: Promise<() => void>[] = [];
  /** The process that the calls are of, when more may go with them. */
  #sender: ProgramProcess | undefined;

  constructor(world: ProgramWorld) {
    this.#world = world;
    this.#model = new LockModel((token) => world.ears(this.#callers.of(token).process, token), world.trustsWaiters);
    this.#checks = new ProgramChecks(world, this.#model, this.#callers);
  }

  async run(program: readonly Operation[]): Promise<void> {
    for (const operation of program) await this.#do(operation);
    await this.#settle();
    await this.#everybodyGetsIn();
    await this.#nothingIsLeft();
  }

  async #do(operation: Operation): Promise<void> {
    const { processes } = this.#world;
    switch (operation.do) {
      case 'force':
        await this.#settle();
        this.#call(processes[0]!.store.forceRelease(operation.key), this.#model.forceRelease(operation.key));
        return this.#settle();
      case 'lose':
        await this.#settle();
        if (await this.#world.lose(operation.key)) this.#model.lose(operation.key);
        return;
      case 'pass':
        return this.#pass(operation.ms);
      case 'crash':
        await this.#settle();
        await this.#world.crash(operation.process);
        for (const caller of this.#callers.open) if (!caller.process.isAlive) caller.isOver = true;
        return;
      case 'forget fences':
        await this.#settle();
        return this.#world.forgetFences();
      case 'ask':
        return this.#by(this.#callers.add(operation, processes[operation.process]!), operation);
      default: {
        const some =
          operation.who === ANYBODY ? this.#callers.all.filter(({ process }) => process.isAlive) : this.#callers.open;
        const caller = some[operation.who % some.length];
        if (caller) await this.#by(caller, operation);
      }
    }
  }

  /** Does what a caller wants; together with what its process wanted just before, if both can go in one command. */
  async #by(caller: Caller, operation: Ask | ByCaller): Promise<void> {
    const { process, command } = caller;
    if (this.#model.hasNoPlace(command)) return;
    // Whoever is told of a lock that it has given up gives it back, and so what arrives late.
    const isLate = operation.do === 'again' && caller.isOver;
    const alone =
      !operation.together ||
      isLate ||
      operation.do === 'renew' ||
      this.#callers.all.some(({ command, isOver }) => isOver && this.#model.waits(command));
    if (alone || this.#sender !== process) await this.#settle();
    this.#sender = operation.do === 'renew' ? undefined : process;
    this.#perform(caller, operation);
    if (alone) await this.#settle();
  }

  #perform(caller: Caller, operation: Ask | ByCaller): void {
    const { command, process } = caller;
    const { store, known } = process;
    const model = this.#model;
    const isPermit = command.sharing.startsWith('permits');
    switch (operation.do) {
      case 'ask':
        return this.#acquire(caller, false);
      case 'again':
        // Of one that is over, a copy that arrives late.
        return this.#acquire(caller, !caller.isOver);
      case 'cancel':
        caller.isOver = true;
        known.delete(command.token);
        model.cancel(command);
        return this.#call(store.cancel(command), undefined);
      case 'forget':
        if (!model.waits(command) || model.count(command) > 0) return;
        caller.isOver = true;
        known.delete(command.token);
        return;
      case 'release':
        caller.isOver ||= !model.waits(command);
        return this.#call(store.release(command), model.release(command));
      case 'keep':
        caller.isOver ||= !model.waits(command);
        return this.#call(store.release(command, KEEP_MS), model.release(command, KEEP_MS));
      case 'renew': {
        const lock = { ...command, leaseMs: operation.leaseMs };
        const renewed = store.renew([lock]).then(({ gone }) => gone.length === 0);
        return this.#call(renewed, model.renew(lock));
      }
      case 'reserve':
        if (!isPermit && command.keys.length === 1)
          this.#grant(command, store.reserve(command), model.reserve(command));
        return;
      case 'upgrade':
        if (!isPermit) this.#upgrade(caller, ++caller.upgrades);
        return;
      case 'upgrade late':
        // A first copy of one that it asked for before, and that was answered.
        if (!isPermit && caller.upgrades > 0) this.#upgrade(caller, Math.ceil((operation.when * caller.upgrades) / 10));
        return;
      case 'downgrade':
        if (!isPermit && !command.token.endsWith(LOCAL_WAITERS_MARK)) this.#downgrade(caller, caller.upgrades);
        return;
      case 'downgrade late':
        if (!isPermit && !command.token.endsWith(LOCAL_WAITERS_MARK) && caller.upgrades > 0)
          this.#downgrade(caller, Math.floor((operation.when * caller.upgrades) / 10));
        return;
    }
  }

  #upgrade({ command, process: { store } }: Caller, number: number): void {
    this.#grant(command, store.upgrade(command, number), this.#model.upgrade(command, number));
  }

  #downgrade({ command, process: { store } }: Caller, number: number): void {
    this.#call(store.downgrade(command, number), this.#model.downgrade(command, number));
  }

  #acquire(caller: Caller, again: boolean): void {
    const { command, process } = caller;
    if (!this.#model.waits(command) && this.#model.count(command) === 0) this.#callers.arrives(caller);
    const expected = this.#model.acquire(command);
    if (expected === 'other permits' || (!expected.granted && !command.queue)) caller.isOver = true;
    this.#grant(command, process.store.acquire({ ...command, isQueued: again }), expected);
    // Its keys are given back by one more command: nothing goes with this one.
    if (expected === 'other permits') this.#sender = undefined;
  }

  #call(answer: Promise<unknown>, expected: unknown): void {
    this.#calls.push(answer.then((actual) => () => same(actual, expected)));
  }

  #grant(
    command: AcquireCommand,
    answer: Promise<Granted | Busy | undefined>,
    expected: ModelAnswer | undefined,
  ): void {
    const read = answer.catch((error: unknown) => {
      if (error instanceof LockOptionsError) return 'other permits' as const;
      throw error;
    });
    this.#calls.push(read.then((actual) => () => this.#checks.answer(command, actual, expected)));
  }

  async #pass(ms: number): Promise<void> {
    await this.#settle();
    this.#model.pass(ms);
    await this.#world.pass(ms);
  }

  /** Waits for all that is under way, and compares. */
  async #settle(): Promise<void> {
    this.#sender = undefined;
    if (this.#calls.length === 0) return;
    const checks = await Promise.all(this.#calls);
    this.#calls = [];
    await this.#world.settle();
    this.#model.settle();
    for (const check of checks) check();
    await this.#checks.settled();
  }

  /** Whoever still waits is let in, at the latest when the leases of the dead are over. */
  async #everybodyGetsIn(): Promise<void> {
    for (let rounds = 0; this.#callers.open.length > 0; rounds++) {
      if (rounds > this.#callers.all.length) throw new Error('Somebody waits for ever.');
      for (const caller of this.#callers.open) {
        if (this.#model.hasNoPlace(caller.command)) continue;
        if (this.#model.count(caller.command) < caller.command.keys.length) this.#acquire(caller, true);
        await this.#settle();
        if (this.#model.count(caller.command) < caller.command.keys.length) continue;
        caller.isOver = true;
        this.#call(caller.process.store.release(caller.command), this.#model.release(caller.command));
        await this.#settle();
      }
      if (rounds === 0) await this.#pass(LONGEST_LEASE_MS);
    }
  }

  async #nothingIsLeft(): Promise<void> {
    await this.#world.pass(2 * ALIVE_MS + LONGEST_LEASE_MS, true);
    same(await this.#world.leftovers(), []);
  }
}
