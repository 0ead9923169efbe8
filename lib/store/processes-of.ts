import type { FoundProcesses, LockStore, ProcessQuestion, ProcessReply, Unreached } from './lock-store.js';

/** A store of the app's own, without the methods to find processes. */
const UNSUPPORTED: Unreached = {
  what: 'server',
  name: 'the store',
  reason: 'unsupported',
  message:
    'The store of this app does not know its processes: it has no "findProcesses" and no "askProcess". ' +
    'So only this process was asked.',
};

/** Finds the live processes that share a store. Never rejects. */
export async function processesOf(store: LockStore): Promise<FoundProcesses> {
  if (!store.findProcesses || !store.askProcess) return { sources: [], unreached: [UNSUPPORTED] };
  return store.findProcesses();
}

/** Asks a process that shares a store. Never rejects. */
export async function askProcessOf(store: LockStore, source: string, question: ProcessQuestion): Promise<ProcessReply> {
  return store.askProcess ? store.askProcess(source, question) : 'unavailable';
}
