/** What the page asks for. The app passes it on to the launcher, which has the processes. */
export type DemoCommand =
  /** Runs the scenario of this name. */
  { readonly command: 'run'; readonly scenario: string } | { readonly command: 'stage'; readonly action: StageAction };

/**
 * What can be done on the live stage. `kill`: kills the next process that gets the lock. `stall`: stops it for longer
 * than its lease, right before its write. `redis`: takes Redis away for some seconds. `add`: starts one more process.
 */
export const STAGE_ACTIONS = ['start', 'kill', 'stall', 'redis', 'add', 'stop'] as const;
export type StageAction = (typeof STAGE_ACTIONS)[number];

/** What the live stage is called where a scenario has its name. */
export const LIVE_STAGE = 'live';

/** A process of the live stage. */
export interface StageProcess {
  readonly name: string;
  readonly pid: number;
  readonly state: 'running' | 'stalled' | 'killed';
  /** Whether it holds the lock. */
  readonly holds: boolean;
  /** How many withdrawals it has confirmed. */
  readonly done: number;
}

/** What the live stage looks like at the moment. */
export interface StageView {
  readonly processes: readonly StageProcess[];
  /** What the database says; null before it was asked. */
  readonly balance: number | null;
  /** How many withdrawals that were confirmed are not in it. */
  readonly lost: number;
  /** What it should say, after all withdrawals that were confirmed. */
  readonly expected: number;
  readonly done: number;
  /** How many were answered 409, 503, or not at all. */
  readonly refused: number;
  /** The median time to an answer, lately, in ms. */
  readonly waitMs: number;
  /** Whether the demonstration can take Redis away: not one that it was given. */
  readonly ownsRedis: boolean;
}

/** A scenario, as the page shows it. */
export interface DemoScenario {
  readonly name: string;
  readonly title: string;
  /** What is about to happen. */
  readonly story: string;
  /** What goes wrong without the lock, and what the lock does about it. */
  readonly why: string;
  /** The lock, as it stands in the code. */
  readonly lock: string;
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
  /** What the accidents are called. */
  readonly accident: string;
  readonly accidents: number;
  /** How often each status was answered. */
  readonly statuses: Readonly<Record<string, number>>;
  /** How often somebody found the shop too busy (409), and came again. */
  readonly cameAgain: number;
  /** Requests a second that did what they were asked for. */
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** What the launcher tells, and the page shows. */
export type DemoNews =
  | { readonly news: 'ready'; readonly scenarios: readonly DemoScenario[] }
  /** Somebody has asked for it: its processes start. */
  | { readonly news: 'starts'; readonly scenario: string }
  /** `processes`: how many take part. */
  | { readonly news: 'began'; readonly scenario: string; readonly processes: number }
  | ({ readonly news: 'progress' } & DemoProgress)
  | ({ readonly news: 'outcome' } & DemoOutcome)
  | ({ readonly news: 'stage' } & StageView)
  /** Says in words what was just seen on the live stage. */
  | { readonly news: 'seen'; readonly text: string }
  | { readonly news: 'ended'; readonly scenario: string }
  | { readonly news: 'failed'; readonly scenario: string; readonly reason: string };
