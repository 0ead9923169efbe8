import { hasVariable, parentOf } from './processes.js';

/** How often to look, in ms. */
const LOOKS_EVERY_MS = 500;

/**
 * Calls back when npm has ended, if this process runs by `npx` or as a script of npm. npm passes SIGTERM on to its
 * shell only, and other signals to nobody: what the shell runs would go on.
 */
export function whenNpmEnds(ended: () => void, env: NodeJS.ProcessEnv = process.env): void {
  const script = env['npm_lifecycle_script'];
  if (!script?.includes('nest-redis-lock')) return;
  const isOfScript = (pid: number): boolean => hasVariable(pid, 'npm_lifecycle_script', script);
  // Some shells, such as bash, replace themselves by what they run. Then npm is the parent.
  const hasShell = isOfScript(process.ppid);
  const ancestors = (): string => [process.ppid, hasShell && parentOf(process.ppid)].join();
  // Something else of the script has started this, and may end.
  if (hasShell && isOfScript(parentOf(process.ppid) ?? 0)) return;
  const first = ancestors();
  const timer = setInterval(() => {
    if (ancestors() === first) return;
    clearInterval(timer);
    ended();
  }, LOOKS_EVERY_MS).unref();
}
