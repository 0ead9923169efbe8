import { execFileSync, spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';

const canPin = spawnSync('taskset', ['-c', '0', 'true']).status === 0;

/** Wherever the system likes: what users see. */
export const unpinned = { name: 'unpinned' };

/**
 * On which core the server and the clients run. On one core the two never run at once, so whatever a client spends is
 * time the server waits: the strict figure. With a core each, a client's work can hide behind the server's.
 */
export const pinnings = pinningsOfThisMachine();

function pinningsOfThisMachine() {
  if (!canPin) return [unpinned];
  const same = { name: 'same core', server: 0, clients: 0 };
  return availableParallelism() > 1 ? [same, { name: 'split', server: 0, clients: 1 }] : [same];
}

export const strictest = pinnings[0];
export const roomiest = pinnings.at(-1);

/** The command line that runs a command on a core, or wherever the system likes when there is no core given. */
export function onCore(core, command) {
  return core === undefined ? command : ['taskset', '-c', String(core), ...command];
}

/** Moves a running process to a core. Starting there would take long: many clients start at once, and share it. */
export function moveToCore(core, pid) {
  if (core !== undefined) execFileSync('taskset', ['-acp', String(core), String(pid)], { stdio: 'ignore' });
}
