import { isDone, type Scenario } from '../scenarios/scenario.js';
import type { ShopClient } from '../scenarios/shop-client.js';

/** A race of many callers, with the lock or without it. It is what `--json` prints. */
export interface RaceResult {
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

export async function runRace(scenario: Scenario, shop: ShopClient, lock: boolean): Promise<RaceResult> {
  const start = performance.now();
  const { expected, actual, accidents, answers } = await scenario.run(shop, lock ? '' : '?unsafe=true');
  const seconds = (performance.now() - start) / 1_000;
  const statuses: Record<string, number> = {};
  for (const { status } of answers) statuses[status] = (statuses[status] ?? 0) + 1;
  const times = answers.map(({ ms }) => ms).sort((a, b) => a - b);
  const percentile = (share: number): number => Math.round(times[Math.ceil(times.length * share) - 1] ?? 0);
  return {
    scenario: scenario.name,
    lock,
    expected,
    actual,
    accident: scenario.accident,
    accidents,
    statuses,
    perSecond: Math.round(answers.filter(isDone).length / seconds),
    p50Ms: percentile(0.5),
    p99Ms: percentile(0.99),
  };
}

/** What the shop may say no with: busy, and what the data does not allow. */
const REFUSALS = ['409', '422'];

/** Whether the lock did its part: no accident, and no request that failed for another reason. */
export function isRight({ accidents, statuses }: RaceResult): boolean {
  const counts = Object.entries(statuses);
  return (
    accidents === 0 &&
    counts.some(([status]) => status.startsWith('2')) &&
    counts.every(([status]) => status.startsWith('2') || REFUSALS.includes(status))
  );
}
