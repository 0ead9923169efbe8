const SHORTEST_MS = 5;
const LONGEST_MS = 50;

/**
 * How long to wait before asking the store again: doubling from 5 to 50 ms, half of it by chance so that processes
 * don't ask in step, and never past the end of the holder's lease.
 */
export function pollDelayMs(attempt: number, leaseLeftMs: number): number {
  const longest = Math.min(SHORTEST_MS * 2 ** Math.min(attempt, 10), LONGEST_MS);
  return Math.min(longest * (0.5 + Math.random() / 2), Math.max(1, leaseLeftMs));
}
