import type { CallsAnswer } from '../../core/list/calls-question.js';
import type { ProcessReport } from '../activity/process-report.js';
import { hostAndPid } from './host-and-pid.js';

/** What the processes are asked once a second. */
export interface Asked {
  /** The texts by which the viewers filter. */
  readonly filters: readonly string[];
  /** The keys that they look at. */
  readonly keys: readonly string[];
}

/** What a process has answered, and when. */
export interface KnownProcess {
  /** The source of its tokens: `host:pid:instance`. */
  readonly source: string;
  readonly host: string;
  readonly pid: number;
  /** Its calls. Undefined when it has been silent since it was asked first. */
  readonly calls: CallsAnswer | undefined;
  /** Its past. Undefined of one without `LockPageModule`. */
  readonly report: ProcessReport | undefined;
  /** What it was asked then: its answers are in this order. */
  readonly asked: Asked;
  /** For how long it has not answered, in ms; 0 when it has answered just now. */
  readonly silentMs: number;
}

/** A round of questions, and who answered it. */
interface AskedRound {
  readonly asked: Asked;
  /** By source. */
  readonly calls: ReadonlyMap<string, CallsAnswer>;
  readonly reports: ReadonlyMap<string, ProcessReport>;
  /** Those that live, and did not answer. */
  readonly silent: ReadonlySet<string>;
  /** Whether all others have ended: false when it could not be found out which processes live. */
  readonly isComplete: boolean;
}

type Known = Pick<KnownProcess, 'calls' | 'report' | 'asked'> & { readonly at: number };

/** A process that may have ended is forgotten when it has been silent for so long, in ms. */
const FORGOTTEN_AFTER_MS = 600_000;

/** Keeps the last answers of each living process. One that is silent still holds what it held. */
export class ProcessBook {
  readonly #known = new Map<string, Known>();

  /** Who answered the last round of questions. */
  #answered: ReadonlyMap<string, unknown> = new Map();

  /** Notes a round of questions. */
  note({ asked, calls, reports, silent, isComplete }: AskedRound, nowMs: number): void {
    for (const [source, { at }] of this.#known)
      if (!silent.has(source) && (isComplete || nowMs > at + FORGOTTEN_AFTER_MS)) this.#known.delete(source);
    this.#answered = calls;
    for (const source of silent)
      if (!this.#known.has(source)) this.#known.set(source, { calls: undefined, report: undefined, asked, at: nowMs });
    for (const [source, answer] of calls)
      this.#known.set(source, { calls: answer, report: reports.get(source), asked, at: nowMs });
  }

  /** Returns all processes, by host and pid. */
  all(nowMs: number): KnownProcess[] {
    const known = [...this.#known].map(([source, { at, ...rest }]) => ({
      source,
      ...hostAndPid(source),
      ...rest,
      silentMs: this.#answered.has(source) ? 0 : Math.max(1, nowMs - at),
    }));
    return known.sort((a, b) => (a.host === b.host ? a.pid - b.pid : a.host < b.host ? -1 : 1));
  }
}
