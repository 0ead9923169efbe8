import type { ProcessReport, ReportQuestion } from '../activity/process-report.js';
import { hostAndPid } from './host-and-pid.js';

/** What a process has reported, and when. */
export interface KnownProcess {
  /** The source of its tokens: `host:pid:instance`. */
  readonly source: string;
  readonly host: string;
  readonly pid: number;
  readonly report: ProcessReport;
  /** What it was asked then: the rows of its report are in this order. */
  readonly asked: Asked;
  /** For how long it has not answered, in ms; 0 when it has answered just now. */
  readonly silentMs: number;
}

/** A round of questions, and who answered it. */
interface AskedRound {
  readonly asked: Asked;
  /** By source. */
  readonly reports: ReadonlyMap<string, ProcessReport>;
  /** Tells which of the others may live, although they did not answer. */
  readonly mayLive: (source: string) => boolean;
}

/** A process is forgotten when it has been silent for so long, in ms. */
const FORGOTTEN_AFTER_MS = 600_000;

type Asked = Pick<ReportQuestion, 'filters' | 'keys'>;

/** Keeps the last report of each living process. One that is silent still holds what it held. */
export class ProcessBook {
  readonly #reports = new Map<string, Pick<KnownProcess, 'report' | 'asked'> & { readonly at: number }>();

  /** When the last round of questions was. */
  #roundAt = 0;

  /** Notes a round of questions. */
  note({ asked, reports, mayLive }: AskedRound, nowMs: number): void {
    for (const [source, { at }] of this.#reports)
      if (!mayLive(source) || nowMs > at + FORGOTTEN_AFTER_MS) this.#reports.delete(source);
    this.#roundAt = nowMs;
    for (const [source, report] of reports) this.#reports.set(source, { report, asked, at: nowMs });
  }

  /** Returns all processes, by host and pid. */
  all(nowMs: number): KnownProcess[] {
    const known = [...this.#reports].map(([source, { report, asked, at }]) => ({
      source,
      ...hostAndPid(source),
      report,
      asked,
      silentMs: at === this.#roundAt ? 0 : nowMs - at,
    }));
    return known.sort((a, b) => (a.host === b.host ? a.pid - b.pid : a.host < b.host ? -1 : 1));
  }
}
