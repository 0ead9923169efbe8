import type { LockList } from '../../core/lock-list.js';
import type { LockService } from '../../service/lock.service.js';
import { detailOf } from '../../errors/lock.error.js';
import type { Action } from '../arguments/verb.js';
import { EXIT, exitCodeFor } from '../exit-codes.js';
import { print } from '../print.js';
import { openLocks } from '../redis/open-locks.js';
import { shownLocks, type Display } from '../show/listed-locks.js';
import { unreachedLines } from '../show/unreached.js';
import { listRequest } from './list-request.js';

/** Lists who holds which key, and who waits. Ends with 1 when something could not be reached. */
export const ls: Action = async (given, say) => {
  const request = listRequest(given);
  const { locks, close } = openLocks(given, { warn: say });
  try {
    const list = await locks.list(request);
    await print(given.flag('json') ? `${JSON.stringify(list)}\n` : shownList(list));
    const { length } = list.locks;
    if (length < list.total)
      say(`Only the ${length} of ${list.total} that are held the longest are listed: see --limit.`);
    const outage = await outageOf(locks, list);
    for (const line of outage === undefined ? unreachedLines(list.unreached) : [outage]) say(line);
    if (outage !== undefined) return EXIT.unavailable;
    if (list.unreached.length > 0) return EXIT.no;
    if (list.total === 0 && !given.flag('json')) say('Nobody holds such a lock, or waits for one.');
    return EXIT.ok;
  } finally {
    await close();
  }
};

function shownList({ locks }: LockList): string {
  if (locks.length === 0) return '';
  return shownLocks(locks, display())
    .map((line) => `${line}\n`)
    .join('');
}

function display(): Display {
  const { stdout } = process;
  return stdout.isTTY
    ? { columns: stdout.columns, hasColours: stdout.hasColors() }
    : { columns: undefined, hasColours: false };
}

/** Says why the servers that keep the locks do not answer, or too few of them. Undefined if they do. */
async function outageOf(locks: LockService, { unreached }: LockList): Promise<string | undefined> {
  if (!unreached.some(({ what }) => what === 'server')) return undefined;
  try {
    await locks.isLocked('nest-redis-lock:ls');
    return undefined;
  } catch (error) {
    if (exitCodeFor(error) !== EXIT.unavailable) throw error;
    return detailOf(error as Error);
  }
}
