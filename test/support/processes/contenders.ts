import type { HeldMode, LockOptions, LostReason } from 'nest-redis-lock';
import { TestChild } from './child-process.js';

/** What the callers of a process do: see `children/contend.mjs`. */
export interface Plan {
  readonly callers: number;
  /** How often each of them takes the lock; or, with `wait: 0`, tries to. */
  readonly sections: number;
  /** How long each keeps it, in ms, or from when to when by chance; 0 is one turn of the event loop. */
  readonly holdMs: number | readonly [number, number];
  /** They come at random moments of this time, in ms. */
  readonly arriveWithinMs?: number;
  /** Each stays away for a random part of this time after each section, in ms. */
  readonly pauseMs?: number;
  /** Where it writes down what happens as it happens: see `Journals`. */
  readonly file?: string;
  /** The lease of the module, in ms. */
  readonly lease?: number;
  readonly options: LockOptions;
}

/** The key that all take; of several, each takes some in any order. */
export type Keys = string | readonly string[];

/** One stay inside a lock, as its process noted it, in ms of a clock that all processes share. */
export interface Section {
  readonly pid: number;
  readonly keys: readonly string[];
  readonly mode: HeldMode;
  /** Of a semaphore: how many it has. */
  readonly permits?: number;
  readonly token: string;
  readonly fence: number;
  /** Whether it was still held when the work was done. */
  readonly isHeld: boolean;
  readonly askedAt: number;
  readonly beganAt: number;
  /** Until when its lease lasted, by its own clock, as far as it noted that. */
  readonly goodUntil: number;
  /** When it ended, or its lease did. */
  readonly endedAt: number;
  /**
   * When its holder was through, whether it still held the lock or not: the moment of its write. Undefined if it never
   * was.
   */
  readonly wroteAt?: number;
  /** When its signal aborted, and why. */
  readonly abortedAt?: number;
  readonly lost?: LostReason;
  /** When a task ran after the end of its lease that saw no abort. */
  readonly silentAt?: number;
  /** What `unlock()` answered, and when. */
  readonly unlocked?: boolean;
  readonly unlockedAt?: number;
  /** With which code its call failed, as if it had not been let in. */
  readonly refused?: string;
}

interface Report {
  readonly journal: readonly Section[];
  readonly cancelled: number;
}

/** The clock of the journals. */
export const clock = (): number => Number(process.hrtime.bigint()) / 1e6;

/** A real process whose callers contend for one key, or several. */
export class Contender {
  readonly child: TestChild;
  #report: Promise<Report> | undefined;

  private constructor(url: string, keys: Keys, plan: Plan) {
    this.child = new TestChild('contend.mjs', url, JSON.stringify(keys), JSON.stringify(plan));
  }

  /** Starts a process for each plan; they begin when told to. */
  static async start(url: string, keys: Keys, ...plans: Plan[]): Promise<Contender[]> {
    const contenders = plans.map((plan) => new Contender(url, keys, plan));
    await Promise.all(contenders.map(({ child }) => child.message()));
    return contenders;
  }

  go(): void {
    this.#report = this.child.message<Report>();
    this.#report.catch(() => undefined);
    this.child.send('go');
  }

  /** Ends the wait of every nth caller. */
  cancelEvery(nth: number): void {
    this.child.send({ cancel: nth });
  }

  /** Lets its callers end what they are about. */
  stop(): void {
    this.child.send('stop');
  }

  /** What it did, when all its callers are through and it has exited by itself. */
  async report(): Promise<Report> {
    const report = await this.#report!;
    const code = await this.child.exit();
    if (code !== 0) throw new Error(`A contender exited with ${code}.`);
    return report;
  }

  kill(): Promise<void> {
    return this.child.kill();
  }
}

/** The journals of several processes as one, by the time of entry. */
export function merged(reports: readonly Report[]): Section[] {
  return reports.flatMap(({ journal }) => journal).sort((a, b) => a.beganAt - b.beganAt);
}

/** The longest time between the end of a section and the begin of the next. */
export function longestGapMs(sections: readonly Section[]): number {
  return sections
    .slice(1)
    .reduce((longest, { beganAt }, index) => Math.max(longest, beganAt - sections[index]!.endedAt), 0);
}

/** The longest that any of them waited, in ms. */
export function longestWaitMs(sections: readonly Section[]): number {
  return sections.reduce((longest, { askedAt, beganAt }) => Math.max(longest, beganAt - askedAt), 0);
}

/** Those that were not held any more when their work was done. */
export const lost = (sections: readonly Section[]): Section[] => sections.filter(({ isHeld }) => !isHeld);
