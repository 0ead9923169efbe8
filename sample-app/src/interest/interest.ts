import { MAX_MONEY } from '../accounts/money.js';

/**
 * Returns the interest on a balance: 1 %, in whole minor units. An account that is full gets what it can hold: one that
 * failed would end the run for all who come after it.
 */
export function interestOn(balance: number): number {
  return Math.min(Math.floor(balance / 100), MAX_MONEY - balance);
}
