/** Returns the interest on a balance: 1 %, in whole minor units. */
export function interestOn(balance: number): number {
  return Math.floor(balance / 100);
}
