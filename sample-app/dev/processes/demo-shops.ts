import type { AppReport } from './app.process.js';
import type { ChildProcesses, StartedChild } from './child-processes.js';

const APP = new URL('app.process.js', import.meta.url);

/** Starts processes of the shop that may leave out their locks, to show what goes wrong then. */
export function startDemoShops(
  count: number,
  children: ChildProcesses,
  services: NodeJS.ProcessEnv,
): Promise<StartedChild<AppReport>>[] {
  // They wait long enough for the last of a crowd: a demonstration shows the lock, and not the patience of its clients.
  const env = { ...services, PORT: '0', DEMO_UNSAFE: '1', LOCK_WAIT: '60s' };
  return Array.from({ length: count }, () => children.start<AppReport>(APP, { env, quiet: true }));
}
