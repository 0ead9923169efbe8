/** Finds a port of the loopback interface that nobody uses; with a distance, nor the port that far behind it. */
export function freePort(distance?: number): Promise<number>;
