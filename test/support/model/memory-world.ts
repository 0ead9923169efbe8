import { MemoryLockStore } from 'nest-redis-lock/testing';
import type { LockStore } from '../../../lib/store/lock-store.js';
import type { Ears } from './lock-model-answers.js';
import { PROCESSES, ProgramProcess, type ProgramWorld } from './program-world.js';

/** One store in memory; its clock stands still. */
export class MemoryWorld implements ProgramWorld {
  processes: ProgramProcess[] = [];
  readonly trustsWaiters = true;
  lastFence = 0;
  #generation = 0;
  #clock = 0;
  readonly #realNow = performance.now.bind(performance);

  async begin(): Promise<void> {
    this.#clock = Math.ceil(performance.now());
    performance.now = () => this.#clock;
    const store = new MemoryLockStore();
    this.lastFence = 0;
    this.processes = Array.from({ length: PROCESSES }, () => this.#process(store));
  }

  async end(): Promise<void> {
    performance.now = this.#realNow;
  }

  ears(process: ProgramProcess, token: string): Ears {
    return process.isAlive && process.known.has(token) ? 'hears' : 'absent';
  }

  async pass(ms: number): Promise<void> {
    this.#clock += ms;
  }

  async crash(index: number): Promise<void> {
    const dead = this.processes[index]!;
    dead.isAlive = false;
    this.processes[index] = this.#process(dead.store);
  }

  async settle(): Promise<void> {}

  async lose(): Promise<boolean> {
    return false;
  }

  async forgetFences(): Promise<void> {}

  async leftovers(): Promise<readonly string[]> {
    return [];
  }

  #process(store: LockStore): ProgramProcess {
    return new ProgramProcess(`memory-${++this.#generation}`, store);
  }
}
