import { setImmediate } from 'node:timers';

/** Resolves when timers and sockets have had their turn. It does so under fake timers, too. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
