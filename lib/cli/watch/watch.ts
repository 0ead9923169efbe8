import { now } from '../../clock/deadline.js';
import type { Action } from '../arguments/verb.js';
import { Ending } from '../ending.js';
import { EXIT } from '../exit-codes.js';
import { print } from '../print.js';
import { hearOthers } from '../redis/hear-others.js';
import { duration, openLocks } from '../redis/open-locks.js';
import { outageOf } from '../redis/outage-of.js';
import { jsonLine } from '../show/json-line.js';
import { listRequest } from '../show/list-request.js';
import { shownText } from '../show/table.js';
import { LockChanges, type LockChange } from './lock-changes.js';

const [EVERY_MS, LEAST_EVERY_MS] = [1000, 100];
/** More keys than this are not followed. */
const LIMIT = 10_000;

/** Prints what changes, as lines of JSON, until somebody ends it. */
export const watch: Action = async (given, say) => {
  const request = { ...listRequest(given), limit: LIMIT };
  const everyMs = duration(given, 'every', LEAST_EVERY_MS) ?? EVERY_MS;
  const { locks, commandTimeoutMs, close } = openLocks(given, { warn: say });
  const ending = new Ending();
  const changes = new LockChanges(async (key) => (await locks.storedKey(key))?.holders ?? []);
  let [looks, lookedAt] = [0, now()];

  async function look(): Promise<void> {
    const before = lookedAt;
    lookedAt = now();
    const [list, { sources, unreached }] = [await locks.list(request), await locks.processes.find()];
    const outage = looks++ === 0 ? await outageOf(locks, list) : undefined;
    if (outage !== undefined) {
      say(outage);
      return ending.end(EXIT.unavailable);
    }
    const instances = sources.map((source) => source.slice(source.lastIndexOf(':') + 1));
    const live = unreached.length === 0 ? new Set(instances) : undefined;
    const news = await changes.next({ list, live, sinceMs: looks === 1 ? 0 : now() - before });
    for (const change of news) sayReached(change);
    if (looks === 1 && list.total > LIMIT)
      say(`There are ${list.total} keys. Only the ${LIMIT} that are held the longest are followed: give a pattern.`);
    const at = new Date();
    const lines = news.map((change) => jsonLine({ at, ...change }));
    if (lines.length > 0 && !(await print(lines.join('')))) ending.end(EXIT.ok);
  }

  /** For the person at the terminal, also when a program reads the lines. */
  function sayReached(change: LockChange): void {
    if (change.event === 'unreached') say(shownText(change.message));
    if (change.event === 'reached') say(`The ${change.what} ${shownText(change.name)} answers again, or is gone.`);
  }

  try {
    await hearOthers(locks, commandTimeoutMs);
    return await ending.repeat(everyMs, look);
  } finally {
    await close();
  }
};
