import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { INSIDE, sessionName } from './watched.js';

/** A process, as /proc shows it. */
interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
}

/**
 * Lists the processes of this machine that have not ended; undefined where there is no /proc. Those that have ended may
 * stay as zombies: in a container, there may be nobody who collects them.
 */
export function liveProcesses(): readonly Process[] | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    // It may be an empty directory, or that of other processes.
    if (readlinkSync('/proc/self') !== String(process.pid)) return undefined;
    return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? liveProcess(name) : []));
  } catch {
    return undefined;
  }
}

/** Lists the processes that have this in their environment; undefined where there is no /proc. */
const processesWith = (variable: string, value: string): readonly Process[] | undefined =>
  liveProcesses()?.filter(({ pid }) => hasVariable(pid, variable, value));

/** Finds the sessions whose processes have this LOCK_TOKEN in their environment. */
export const sessionsWithToken = (token: string): readonly number[] => [
  ...new Set(processesWith('LOCK_TOKEN', token)?.map(({ session }) => session)),
];

/** Lists the processes of a session that have not ended; undefined where there is no /proc. */
const processesOfSession = (id: number): readonly Process[] | undefined =>
  liveProcesses()?.filter(({ session }) => session === id);

/**
 * Sends a signal to the process groups of a session: to that of its leader, and to those that others have made in it,
 * as `timeout` and shells with job control do. Where there is no /proc, only to that of the leader.
 *
 * @returns whether there was any
 */
export function signalSession(id: number, signal: NodeJS.Signals): boolean {
  const isSent = signalGroup(id, signal);
  const groups = new Set(processesOfSession(id)?.map(({ group }) => group));
  groups.delete(id);
  return [...groups].map((group) => signalGroup(group, signal)).includes(true) || isSent;
}

function signalGroup(id: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(-id, signal);
  } catch {
    return false; // none is left
  }
}

/**
 * Lists the processes of the session of a command that have not ended. When all have, those that kill in turn what
 * `run` has started in it, in a session of its own. Undefined where there is no /proc.
 */
export function membersOfSession(id: number, token: string): readonly Process[] | undefined {
  const own = processesOfSession(id);
  return own?.length === 0 ? processesWith(INSIDE, sessionName(id, token)) : own;
}

/** Finds the session of this process; undefined where there is no /proc. */
export const ownSession = (): number | undefined => liveProcess('self')[0]?.session;

/** Finds the session of a process; undefined where there is no /proc. */
export const sessionOf = (pid: number): number | undefined => liveProcess(String(pid))[0]?.session;

/** Finds the parent of a process; undefined where there is no /proc. */
export function parentOf(pid: number): number | undefined {
  return liveProcess(String(pid))[0]?.parent;
}

function liveProcess(name: string): Process[] {
  try {
    // "pid (name) state parent group session …", and a name may contain anything.
    const stat = readFileSync(`/proc/${name}/stat`, 'latin1');
    const [state, ...ids] = stat.slice(stat.lastIndexOf(')') + 2).split(' ', 4);
    const [parent, group, session] = ids.map(Number) as [number, number, number];
    return state === 'Z' || state === 'X' ? [] : [{ pid: Number(name), parent, group, session }];
  } catch {
    return []; // it has ended meanwhile
  }
}

/** Whether a process has this in its environment; false where there is no /proc. */
export function hasVariable(pid: number, variable: string, value: string): boolean {
  try {
    return `\0${readFileSync(`/proc/${pid}/environ`, 'utf8')}\0`.includes(`\0${variable}=${value}\0`);
  } catch {
    return false; // another user's
  }
}
