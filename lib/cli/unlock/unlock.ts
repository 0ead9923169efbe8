import { hostname, userInfo } from 'node:os';
import { createInterface } from 'node:readline';
import type { Arguments } from '../arguments/arguments.js';
import { UsageError } from '../arguments/usage.error.js';
import type { Action } from '../arguments/verb.js';
import { EXIT, exitCodeOf } from '../exit-codes.js';
import { print } from '../print.js';
import { hearOthers } from '../redis/hear-others.js';
import { openLocks } from '../redis/open-locks.js';
import { shownLock } from '../show/processes-of-lock.js';
import { shownText } from '../show/table.js';

/** Releases a key by force. Ends with 1 when nothing was released. */
export const unlock: Action = async (given, say) => {
  const options = unlockOptions(given);
  const key = given.words[0]!;
  const { locks, isQuorum, commandTimeoutMs, close } = openLocks(given, { warn: say });
  try {
    await hearOthers(locks, commandTimeoutMs);
    const info = await locks.inspect(key);
    if (!info) return await answer(`${shownText(key)} is free: there is nothing to release.\n`);
    const holders = info.holders.filter(({ token }) => options.token === undefined || token === options.token);
    const tokens = holders.map(({ token }) => token);
    if (tokens.length === 0)
      return await answer(`Nothing was released: ${shownText(key)} is not held by that token.\n`);
    const isConfirmed = options.isSure || (await confirmation(shownLock(info, isQuorum), tokens.length));
    if (isConfirmed === 'SIGINT') return exitCodeOf(isConfirmed);
    if (!isConfirmed) return await answer('Nothing was released.\n');
    // Only those that were shown: another may hold the key by now.
    const { by, reason } = options;
    const released = await Promise.all(tokens.map((token) => locks.forceUnlock(key, { token, by, reason })));
    const count = released.filter(Boolean).length;
    if (count === 0) return await answer('Nothing was released: it was released just now.\n');
    await print(`Released ${shownText(key)}${count > 1 ? `, of ${count} holders` : ''}.\n`);
    return EXIT.ok;
  } finally {
    await close();
  }
};

async function answer(text: string): Promise<number> {
  await print(text);
  return EXIT.no;
}

function unlockOptions(given: Arguments) {
  const [token, isForced, isSure] = [given.text('token'), given.flag('force'), given.flag('yes')];
  const [reason, by = userOfMachine()] = [given.text('reason'), given.text('by')];
  if ((token === undefined) === !isForced)
    throw new UsageError('Say whose lock: --token, as "inspect" shows it, or --force for whoever holds it.');
  if ((isForced && reason === undefined) || reason?.trim() === '')
    throw new UsageError('Say why: --reason "…" is shown to the process that loses its lock.');
  if (!isSure && !(process.stdin.isTTY && process.stderr.isTTY))
    throw new UsageError('There is no terminal to ask on. Give --yes if you are sure.');
  return { token, isSure, reason, by };
}

/** `user@host`; without the user where the system has no name for it, as in some containers. */
function userOfMachine(): string {
  try {
    return `${userInfo().username}@${hostname()}`.slice(0, 200);
  } catch {
    return hostname().slice(0, 200);
  }
}

/** Asks the person at the terminal. `SIGINT` if the answer is Ctrl-C: while somebody types, it is no signal. */
async function confirmation(shown: string, count: number): Promise<boolean | 'SIGINT'> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  process.stderr.write(`${shown}\n`);
  const what = count === 1 ? 'its work goes on without the lock' : `the work of ${count} holders goes on without it`;
  const question = `The next waiter gets in, and ${what} unless it stops. Release it? Type yes: `;
  const [said, signal] = await new Promise<[string | undefined, 'SIGINT'?]>((resolve) => {
    terminal.question(question, (line) => resolve([line]));
    terminal.once('SIGINT', () => resolve([undefined, 'SIGINT']));
    // After Ctrl-Z and "fg", nobody would read what is typed.
    terminal.on('SIGCONT', () => terminal.resume());
    // By Ctrl-D, or because the terminal is gone.
    terminal.once('close', () => resolve([undefined]));
  });
  terminal.close();
  // The cursor still stands behind the question.
  if (said === undefined) process.stderr.write('\n');
  return signal ?? said?.trim().toLowerCase() === 'yes';
}
