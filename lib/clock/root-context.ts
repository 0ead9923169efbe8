import { AsyncLocalStorage } from 'node:async_hooks';

const inRoot = AsyncLocalStorage.snapshot();

/**
 * Runs something outside of all requests. What many calls share, such as a timer or a connection, begins here: else it would
 * keep the async context of whichever call began it, and run for the others in that.
 */
export const atRoot = <T>(work: () => T): T => inRoot(work);
