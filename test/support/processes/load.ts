import { setTimeout as sleep } from 'node:timers/promises';
import type { LockOptions, RedisLockModuleOptions } from 'nest-redis-lock';
import { TestChild } from './child-process.js';
import type { Section } from './contenders.js';
import { Journals } from './journals.js';

/** What the callers of each process do: see `children/hammer.mjs`. */
export interface LoadPlan {
  /** As the module takes it; of a cluster, its nodes. */
  readonly connection: unknown;
  readonly options: RedisLockModuleOptions & LockOptions;
  /** Some of them may be several keys, which are taken together. */
  readonly keys: readonly (string | readonly string[])[];
  readonly processes: number;
  readonly callers: number;
  /** How long most stay inside, in ms, and how long some. */
  readonly holdMs: readonly [number, number];
  readonly stayMs: readonly [number, number];
  /** How many of those who share a key stay long. @default one in twenty, as of all others */
  readonly sharersStay?: number;
}

/** A load of all modes, for one Redis. */
export const ALL_MODES = {
  keys: ['a', 'b', 'shared', 'permits'],
  processes: 2,
  callers: 4,
  holdMs: [0, 10],
  stayMs: [100, 800],
} as const;

/** A load of exclusive locks, for a quorum. */
export const ON_QUORUM = {
  keys: ['a', 'b', 'c', 'd'],
  processes: 2,
  callers: 3,
  holdMs: [0, 10],
  stayMs: [100, 600],
} as const;

/** What a process says in the end. */
interface Report {
  readonly failed: Readonly<Record<string, number>>;
  readonly left: readonly string[];
}

/** What all processes did. */
interface Outcome {
  readonly sections: readonly Section[];
  readonly failed: Readonly<Record<string, number>>;
  /** Timers and sockets, by process. */
  readonly left: Readonly<Record<string, readonly string[]>>;
}

/** Real processes that take and give back locks for as long as they are let, whatever happens to Redis. */
export class Load {
  readonly #journals = new Journals();
  readonly #files: string[] = [];
  readonly #children: TestChild[] = [];
  #reports: Promise<Report>[] = [];

  static async start({ processes, ...plan }: LoadPlan): Promise<Load> {
    const load = new Load();
    for (let count = 0; count < processes; count++) {
      const file = load.#journals.next();
      load.#files.push(file);
      load.#children.push(new TestChild('hammer.mjs', JSON.stringify({ ...plan, file })));
    }
    await Promise.all(load.#children.map((child) => child.message()));
    load.#reports = load.#children.map((child) => child.message<Report>());
    for (const child of load.#children) child.send('go');
    return load;
  }

  /** Resolves when each of the processes has been inside so many times from now on. */
  async goesOn(times = 5, patienceMs = 40_000): Promise<void> {
    const least = this.#files.map((file) => this.#journals.entered(file) + times);
    const left = () => this.#files.map((file, index) => least[index]! - this.#journals.entered(file));
    await this.#journals
      .when(() => left().every((count) => count <= 0), patienceMs)
      .catch((error: unknown) => {
        throw new Error(
          `After ${patienceMs} ms the processes still had to go in so many times: ${left().join(', ')}.`,
          { cause: error },
        );
      });
  }

  /** Stops one of the processes, as it is, for so long. */
  async standStill(which: number, ms: number): Promise<void> {
    const { process: child } = this.#children[which % this.#children.length]!;
    child.kill('SIGSTOP');
    await sleep(ms);
    child.kill('SIGCONT');
  }

  /**
   * Lets all come to their end. Answers what they did, how many calls failed, by code, and what is left in the
   * processes.
   */
  async stop(): Promise<Outcome> {
    for (const child of this.#children) child.send('stop');
    const failed: Record<string, number> = {};
    const left: Record<string, readonly string[]> = {};
    for (const [index, report] of (await Promise.all(this.#reports)).entries()) {
      for (const [code, count] of Object.entries(report.failed)) failed[code] = (failed[code] ?? 0) + count;
      left[this.#children[index]!.process.pid!] = report.left;
    }
    await Promise.all(this.#children.map((child) => child.exit()));
    return { sections: this.#journals.sections(), failed, left };
  }

  async end(): Promise<void> {
    for (const report of this.#reports) report.catch(() => undefined);
    await Promise.all(this.#children.map((child) => child.kill()));
    this.#journals.remove();
  }
}
