/**
 * Runs in a process of its own beside `nest-redis-lock run`, and kills the command when that can't: because it was
 * killed itself, stands still, or is too busy. What to watch is in its environment: the LOCK_TOKEN of the command, its
 * process group if it has started, and when to kill it. News are lines of stdin:
 *
 * - `group <id>`: the process group of the command, which has started;
 * - `until <ms>`: when to kill it, by the monotonic clock; each such line replaces the last;
 * - `end`: the command has ended.
 *
 * The end of stdin without `end` says that nobody looks after the command any more.
 */
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { membersOfSession, sessionsWithToken, signalSession } from './run/processes.js';
import { sharedNow, WATCHED } from './run/watched.js';

const LONGEST_TIMER_MS = 2 ** 31 - 1;
/** How soon to kill again, in ms, at first and later: each time, all processes of the machine are looked at. */
const [AGAIN_MS, AGAIN_LATER_MS] = [20, 1000];
/** How long to look for the command after the end of stdin, in ms: it may be just starting. */
const STARTING_MS = 1000;
/**
 * How long to wait for what was killed, in ms: who runs this one inside of another lock must not release that before.
 */
const DYING_MS = 5000;

const [token = '', startedGroup, killAt] = (process.env[WATCHED] ?? '').split(' ');
let group = Number(startedGroup) || undefined;
let until = Number(killAt ?? Infinity);
let timer: NodeJS.Timeout | undefined;

// It ends with the process that started it, not with a signal to everybody.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const) process.on(signal, () => undefined);

/** @returns the groups that were killed, with all that is in their sessions */
function kill(): readonly number[] {
  const groups = group === undefined ? sessionsWithToken(token) : [group];
  return groups.filter((id) => signalSession(id, 'SIGKILL'));
}

function planKill(): void {
  clearTimeout(timer);
  // If this process itself stood still, the news that put the end off wait in its pipe: they are read before the
  // immediate.
  timer = setTimeout(
    () => setImmediate(() => killInTime()),
    Math.min(Math.max(0, Math.ceil(until - sharedNow())), LONGEST_TIMER_MS),
  );
}

function killInTime(againMs = AGAIN_MS): void {
  if (until > sharedNow()) return planKill();
  kill();
  timer = setTimeout(killInTime, againMs, Math.min(2 * againMs, AGAIN_LATER_MS));
}

async function abandoned(): Promise<void> {
  const giveUpAt = sharedNow() + STARTING_MS;
  let killed = kill();
  while (killed.length === 0 && group === undefined && sharedNow() < giveUpAt) {
    await sleep(AGAIN_MS);
    killed = kill();
  }
  if (killed.length > 0)
    tell(`the process that held the lock was killed, and so was its command (group ${killed.join()}).`);
  const exitAt = sharedNow() + DYING_MS;
  while (killed.some((id) => membersOfSession(id, token)?.length) && sharedNow() < exitAt) {
    killed.forEach((id) => signalSession(id, 'SIGKILL'));
    await sleep(AGAIN_MS);
  }
  process.exit();
}

function tell(line: string): void {
  try {
    writeSync(2, `nest-redis-lock: ${line}\n`);
  } catch {
    // Nobody reads it.
  }
}

planKill();

createInterface({ input: process.stdin })
  .on('line', (line) => {
    const [word, value] = line.split(' ');
    if (word === 'end') process.exit();
    if (word === 'group') group = Number(value);
    if (word === 'until') until = Number(value);
    planKill();
  })
  .on('close', () => void abandoned());
