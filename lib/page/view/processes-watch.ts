import { now } from '../../clock/deadline.js';
import type { Processes } from '../../core/processes.js';
import type { Unreached } from '../../store/lock-store.js';
import type { ProcessReport, ReportQuestion } from '../activity/process-report.js';
import { slotAt } from '../activity/label-times.js';
import { ProcessBook, type KnownProcess } from './process-book.js';
import { readReport, readTimes } from './read-report.js';
import { TimesBook } from './times-book.js';

/** The kinds of question that the page asks. */
export const REPORT = 'page.report';
export const TIMES = 'page.times';

type AskProcesses = Pick<Processes, 'ask' | 'askAll'>;

/** What is known of the processes after a round of questions. */
export interface Round {
  readonly processes: readonly KnownProcess[];
  /** What was not reached, in one sentence each. */
  readonly unreached: readonly string[];
}

/** Asks all processes of the app what they do, and keeps what they have told. */
export class ProcessesWatch {
  readonly times = new TimesBook();
  readonly #asker: AskProcesses;
  readonly #book = new ProcessBook();

  constructor(asker: AskProcesses) {
    this.#asker = asker;
  }

  /** Asks all processes once. Never rejects. */
  async ask(question: Omit<ReportQuestion, 'slotsFrom'>): Promise<Round> {
    // The slot before may have grown since it was asked for.
    const about: ReportQuestion = { ...question, slotsFrom: slotAt(Date.now()) - 1 };
    const { bySource, unreached } = await this.#asker.askAll({ kind: REPORT, about });
    const reports = new Map([...bySource].map(([source, answer]) => [source, readReport(answer)] as const));
    // A server that does not answer names no processes: those that were there may still be.
    const isComplete = unreached.every(({ what }) => what === 'process');
    const silent = new Set(unreached.flatMap(silentSource));
    this.#book.note({ asked: question, reports, mayLive: (source) => !isComplete || silent.has(source) }, now());
    for (const [source, { times }] of reports) this.times.noteLatest(source, times, Date.now());
    this.times.forget(Date.now(), new Set(reports.keys()));
    // Nobody waits for these: the next round has them.
    void this.#askForOlderTimes(reports);
    return { processes: this.#book.all(now()), unreached: unreached.map(said) };
  }

  /** Whether the last report of a process named this lock. */
  hasReported(source: string, key: string, fence: number): boolean {
    const known = this.#book.all(now()).find((process) => process.source === source);
    const lists = known ? [...known.report.rows, ...known.report.keyRows] : [];
    return lists.some(({ held }) => held.items.some((call) => call.fence === fence && call.keys.includes(key)));
  }

  /** Asks those whose times are not complete for one more part of them. */
  async #askForOlderTimes(reports: ReadonlyMap<string, ProcessReport>): Promise<void> {
    await Promise.all(
      [...reports.keys()].map(async (source) => {
        const before = this.times.missingBefore(source, Date.now());
        if (before === undefined) return;
        const reply = await this.#asker.ask(source, { kind: TIMES, about: { before } });
        if (typeof reply === 'object' && reply.answer !== undefined)
          this.times.noteOlder(source, readTimes(reply.answer));
      }),
    );
  }
}

/** The source of a process that lives and did not answer. */
function silentSource({ what, host, pid, instance, reason }: Unreached): string[] {
  const isSilent = what === 'process' && (reason === 'silent' || reason === 'unavailable');
  return isSilent && host !== undefined ? [`${host}:${pid}:${instance}`] : [];
}

function said({ what, name, reason, message }: Unreached): string {
  if (what !== 'process' || reason !== 'unsupported') return message;
  return `The process ${name} does not import LockPageModule, so its locks are missing here.`;
}
