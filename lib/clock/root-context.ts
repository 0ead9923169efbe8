import { AsyncLocalStorage } from 'node:async_hooks';

const inRoot = AsyncLocalStorage.snapshot();

/**
 * Runs something outside of all requests. Starts what many calls share, such as a timer or a connection: otherwise that
 * would keep the async context of the call that happened to start it, and run in it for all others.
 */
export const atRoot = <T>(work: () => T): T => inRoot(work);
