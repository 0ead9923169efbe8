import { balance } from './balance.js';
import { interest } from './interest.js';
import { orders } from './orders.js';
import { payouts } from './payouts.js';
import { report } from './report.js';
import type { Scenario } from './scenario.js';
import { stock } from './stock.js';

export const SCENARIOS: readonly Scenario[] = [balance, stock, orders, interest, report, payouts];

/** @throws Error that lists the names there are */
export function scenariosNamed(name: string): readonly Scenario[] {
  if (name === 'all') return SCENARIOS;
  const found = SCENARIOS.filter((scenario) => scenario.name === name);
  if (found.length > 0) return found;
  throw new Error(
    `There is no scenario ${JSON.stringify(name)}. There are: ${SCENARIOS.map(({ name }) => name).join(', ')}, all.`,
  );
}
