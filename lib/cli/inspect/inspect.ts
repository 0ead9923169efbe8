import type { Action } from '../arguments/verb.js';
import { EXIT } from '../exit-codes.js';
import { print } from '../print.js';
import { hearOthers } from '../redis/hear-others.js';
import { openLocks } from '../redis/open-locks.js';
import { jsonLine } from '../show/json-line.js';
import { shownLock } from '../show/processes-of-lock.js';
import { shownText } from '../show/table.js';

/** Shows who holds a key, and who waits for it. Ends with 1 when it is free. */
export const inspect: Action = async (given, say) => {
  const { locks, isQuorum, commandTimeoutMs, close } = openLocks(given, { warn: say });
  try {
    await hearOthers(locks, commandTimeoutMs);
    const key = given.words[0]!;
    const info = await locks.inspect(key);
    if (given.flag('json')) await print(jsonLine(info));
    else await print(info ? shownLock(info, isQuorum) : `${shownText(key)} is free.\n`);
    return info ? EXIT.ok : EXIT.no;
  } finally {
    await close();
  }
};
