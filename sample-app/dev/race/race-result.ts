import type { DemoOutcome } from '../../src/demo-page/demo-messages.js';
import { isDone, type Scenario } from '../scenarios/scenario.js';
import type { ShopClient } from '../scenarios/shop-client.js';

/** Lets a crowd do what the scenario says, with the lock or without it. */
export async function runRace(scenario: Scenario, shop: ShopClient, lock: boolean): Promise<DemoOutcome> {
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
    accident: accidents === 1 ? scenario.accident.one : scenario.accident.many,
    accidents,
    statuses,
    cameAgain: answers.reduce((sum, { cameAgain }) => sum + cameAgain, 0),
    perSecond: Math.round(answers.filter(isDone).length / seconds),
    p50Ms: percentile(0.5),
    p99Ms: percentile(0.99),
  };
}

/** What the shop may say no with: busy, and what the data does not allow. */
const REFUSALS = ['409', '422'];

/** Whether the lock did its part: no accident, and no request that failed for another reason. */
export function isRight({ accidents, statuses }: DemoOutcome): boolean {
  const counts = Object.entries(statuses);
  return (
    accidents === 0 &&
    counts.some(([status]) => status.startsWith('2')) &&
    counts.every(([status]) => status.startsWith('2') || REFUSALS.includes(status))
  );
}
