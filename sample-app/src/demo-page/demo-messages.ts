/** What the page asks for. The app passes it on to the launcher, which has the processes. */
export interface DemoCommand {
  readonly command: 'run';
  /** The name of a scenario. */
  readonly scenario: string;
}

/** A scenario, as the page shows it. */
export interface DemoScenario {
  readonly name: string;
  readonly title: string;
  /** What is about to happen. */
  readonly story: string;
  /** The lock, as it stands in the code. */
  readonly lock: string;
  /** What an accident is called, for more than one. */
  readonly accident: string;
}

/** How far the crowd of one half of a demonstration has come. */
export interface DemoProgress {
  readonly scenario: string;
  readonly lock: boolean;
  readonly answered: number;
  readonly of: number;
  /** Since the half began. */
  readonly ms: number;
  /** What the data says at the moment, such as a balance. */
  readonly figure: number | null;
}

/** What came of a crowd, with the lock or without it. It is also what `npm run race -- --json` prints. */
export interface DemoOutcome {
  readonly scenario: string;
  readonly lock: boolean;
  readonly expected: string;
  readonly actual: string;
  readonly accident: string;
  readonly accidents: number;
  /** How often each status was answered. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Requests a second that did what they were asked for. */
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** What the launcher tells, and the page shows. */
export type DemoNews =
  | { readonly news: 'ready'; readonly scenarios: readonly DemoScenario[] }
  /** `processes`: how many take part. */
  | { readonly news: 'began'; readonly scenario: string; readonly processes: number }
  | ({ readonly news: 'progress' } & DemoProgress)
  | ({ readonly news: 'outcome' } & DemoOutcome)
  | { readonly news: 'ended'; readonly scenario: string }
  | { readonly news: 'failed'; readonly scenario: string; readonly reason: string };
