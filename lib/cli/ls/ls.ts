import type { ListOptions, LockList } from '../../core/lock-list.js';
import type { LockService } from '../../service/lock.service.js';
import { UsageError } from '../arguments/usage.error.js';
import type { Action } from '../arguments/verb.js';
import { Ending } from '../ending.js';
import { EXIT } from '../exit-codes.js';
import { print } from '../print.js';
import { hearOthers } from '../redis/hear-others.js';
import { openLocks } from '../redis/open-locks.js';
import { outageOf } from '../redis/outage-of.js';
import type { Say } from '../say.js';
import { jsonLine } from '../show/json-line.js';
import { listRequest } from '../show/list-request.js';
import { shownLocks, type Display } from '../show/listed-locks.js';
import { unreachedLines } from '../show/unreached.js';
import { liveTable, REFRESH_MS } from './live-table.js';

/** Lists who holds which key, and who waits. Ends with 1 when something could not be reached. */
export const ls: Action = async (given, say) => {
  const request = listRequest(given);
  const [isWatch, isJson] = [given.flag('watch'), given.flag('json')];
  if (isWatch && !isJson && !isScreen())
    throw new UsageError(
      '--watch draws on a terminal, and this is none. Give --json for a list each second, or use "watch".',
    );
  // While the terminal is drawn on, nothing else may be written there.
  const notes: string[] = [];
  const { locks, commandTimeoutMs, close } = openLocks(given, { warn: isWatch ? (line) => notes.push(line) : say });
  try {
    await hearOthers(locks, commandTimeoutMs);
    if (!isWatch) return await listOnce(locks, request, { isJson, say });
    const ending = new Ending();
    return isJson ? await listAgain(locks, request, ending) : await liveTable(locks, request, ending);
  } finally {
    for (const note of notes) say(note);
    await close();
  }
};

interface Once {
  readonly isJson: boolean;
  readonly say: Say;
}

async function listOnce(locks: LockService, request: ListOptions, { isJson, say }: Once): Promise<number> {
  const list = await locks.list(request);
  const { length } = list.locks;
  await print(isJson ? jsonLine(list) : shownList(list));
  if (length < list.total)
    say(`Only the ${length} of ${list.total} that are held the longest are listed: see --limit.`);
  const outage = await outageOf(locks, list);
  for (const line of outage === undefined ? unreachedLines(list.unreached) : [outage]) say(line);
  if (outage !== undefined) return EXIT.unavailable;
  if (list.unreached.length > 0) return EXIT.no;
  if (list.total === 0 && !isJson) say('Nobody holds such a lock, or waits for one.');
  return EXIT.ok;
}

/** Prints a list each second, as a line of JSON. */
const listAgain = (locks: LockService, request: ListOptions, ending: Ending): Promise<number> =>
  ending.repeat(REFRESH_MS, async () => {
    const list = await locks.list(request);
    if (!(await print(jsonLine(list)))) ending.end(EXIT.ok);
  });

function shownList({ locks }: LockList): string {
  if (locks.length === 0) return '';
  return shownLocks(locks, display())
    .map((line) => `${line}\n`)
    .join('');
}

const isScreen = (): boolean => process.stdout.isTTY && process.env['TERM'] !== 'dumb';

function display(): Display {
  const { stdout } = process;
  return stdout.isTTY
    ? { columns: stdout.columns || undefined, hasColours: stdout.hasColors() }
    : { columns: undefined, hasColours: false };
}
