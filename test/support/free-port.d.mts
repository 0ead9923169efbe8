/** Finds a port of the loopback interface that nobody uses. */
export function freePort(): Promise<number>;
