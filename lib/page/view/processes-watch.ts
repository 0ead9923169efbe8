import { now } from '../../clock/deadline.js';
import { CALLS } from '../../core/list/calls-question.js';
import type { Processes } from '../../core/processes.js';
import type { Unreached } from '../../store/lock-store.js';
import { slotAt } from '../activity/label-times.js';
import type { ProcessReport, ReportQuestion } from '../activity/process-report.js';
import { ProcessBook, type Asked, type KnownProcess } from './process-book.js';
import { readCalls } from './read-calls.js';
import { readReport, readTimes } from './read-report.js';
import { TimesBook } from './times-book.js';

/** The kinds of question that only processes with a page answer. */
export const REPORT = 'page.report';
export const TIMES = 'page.times';

type AskProcesses = Pick<Processes, 'find' | 'ask' | 'askAll'>;

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
  async ask(asked: Asked): Promise<Round> {
    const found = await this.#asker.find();
    // The slot before may have grown since it was asked for.
    const about: ReportQuestion = { ...asked, slotsFrom: slotAt(Date.now()) - 1 };
    const [{ bySource, unreached }, reported] = await Promise.all([
      this.#asker.askAll({ kind: CALLS, about: { texts: asked.filters, keys: asked.keys } }, found),
      this.#asker.askAll({ kind: REPORT, about }, found),
    ]);
    const reports = read(reported.bySource, readReport);
    this.#book.note(
      {
        ...{ asked, calls: read(bySource, readCalls), reports },
        silent: new Set(unreached.flatMap(silentSource)),
        // A server that does not answer names no processes: those that were there may still be.
        isComplete: unreached.every(({ what }) => what === 'process'),
      },
      now(),
    );
    for (const [source, { times }] of reports) this.times.noteLatest(source, times, Date.now());
    this.times.forget(Date.now(), new Set(reports.keys()));
    // Nobody waits for these: the next round has them.
    void this.#askForOlderTimes(reports);
    return { processes: this.#book.all(now()), unreached: unreached.map(({ message }) => message) };
  }

  /** Whether the last answer of a process named this lock. */
  hasNamed(source: string, key: string, fence: number): boolean {
    const known = this.#book.all(now()).find((process) => process.source === source)?.calls;
    const lists = known ? [...known.byText, ...known.byKey] : [];
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

function read<Answer>(
  bySource: ReadonlyMap<string, unknown>,
  reader: (answer: unknown) => Answer,
): ReadonlyMap<string, Answer> {
  return new Map([...bySource].map(([source, answer]) => [source, reader(answer)] as const));
}

/** The source of a process that lives and did not answer. */
function silentSource({ what, host, pid, instance, reason }: Unreached): string[] {
  const isSilent = what === 'process' && (reason === 'silent' || reason === 'unavailable');
  return isSilent && host !== undefined ? [`${host}:${pid}:${instance}`] : [];
}
