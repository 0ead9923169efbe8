import { setImmediate } from 'node:timers';

/** Resolves when timers and sockets have had their turn. It does so under fake timers, too. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Rejects in a later turn: a caller that tries again at once leaves time for timers and sockets. */
export async function rejectLater(error: unknown): Promise<never> {
  await nextTurn();
  throw error;
}
