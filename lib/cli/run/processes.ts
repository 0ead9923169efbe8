import { readdirSync, readFileSync } from 'node:fs';

/** A process, as /proc shows it. */
interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
}

/**
 * Lists the processes of this machine that have not ended; undefined where there is no /proc. Those that have ended may
 * stay as zombies: in a container, there may be nobody who collects them.
 */
export function liveProcesses(): readonly Process[] | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? liveProcess(name) : []));
  } catch {
    return undefined;
  }
}

/** Finds the process groups whose processes have this LOCK_TOKEN in their environment. */
export function groupsWithToken(token: string): readonly number[] {
  const found = liveProcesses()?.filter(({ pid }) => environmentOf(pid).includes(`LOCK_TOKEN=${token}\0`)) ?? [];
  return [...new Set(found.map(({ group }) => group))];
}

/** Finds the parent of a process; undefined where there is no /proc. */
export function parentOf(pid: number): number | undefined {
  return liveProcess(String(pid))[0]?.parent;
}

function liveProcess(name: string): Process[] {
  try {
    // "pid (name) state parent group …", and a name may contain anything.
    const stat = readFileSync(`/proc/${name}/stat`, 'latin1');
    const [state, parent, group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return state === 'Z' || state === 'X' ? [] : [{ pid: Number(name), parent: Number(parent), group: Number(group) }];
  } catch {
    return []; // it has ended meanwhile
  }
}

function environmentOf(pid: number): string {
  try {
    return `${readFileSync(`/proc/${pid}/environ`, 'latin1')}\0`;
  } catch {
    return ''; // another user's
  }
}
