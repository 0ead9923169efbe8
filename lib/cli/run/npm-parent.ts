import { hasVariable, ownSession, parentOf, sessionOf } from './processes.js';

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
  const starter = process.ppid;
  // Between the shell and this there may be another command, such as dotenv.
  const shell = topmost(starter, isOfScript);
  // Some shells, such as bash, replace themselves by what they run. Then npm is the parent.
  const npm = shell === undefined ? starter : parentOf(shell);
  // What leaves the session of npm outlives it.
  if (npm === undefined || sessionOf(npm) !== ownSession()) return;
  const ancestors = (): string => [process.ppid, shell !== undefined && parentOf(shell)].join();
  const first = ancestors();
  const timer = setInterval(() => {
    if (ancestors() === first) return;
    clearInterval(timer);
    // That command has started this in the background, and has ended.
    if (shell !== undefined && shell !== starter && process.ppid !== starter) return;
    ended();
  }, LOOKS_EVERY_MS).unref();
}

/** Returns the topmost of a process and the ancestors next to it of which something is true; undefined without any. */
function topmost(pid: number, isOne: (pid: number) => boolean): number | undefined {
  let top: number | undefined;
  for (let above: number | undefined = pid; above !== undefined && isOne(above); above = parentOf(above)) top = above;
  return top;
}
