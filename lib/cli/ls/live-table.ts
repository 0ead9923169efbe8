import type { ListOptions, LockList } from '../../core/lock-list.js';
import type { LockService } from '../../service/lock.service.js';
import type { Ending } from '../ending.js';
import { EXIT, exitCodeOf } from '../exit-codes.js';
import { shownLocks } from '../show/listed-locks.js';
import { unreachedLines } from '../show/unreached.js';
import { Screen, type ScreenLook } from './screen.js';

/** How often a list is made anew, in ms. */
export const REFRESH_MS = 1000;
const CTRL_C = '\x03';

/** Shows the table on the whole terminal, anew each second, until somebody ends it. Resolves with the exit code. */
export async function liveTable(locks: LockService, request: ListOptions, ending: Ending): Promise<number> {
  const { stdout } = process;
  const screen = new Screen((key) => {
    if (key === 'q' || key === 'Q') ending.end(EXIT.ok);
    if (key === CTRL_C) ending.end(exitCodeOf('SIGINT'));
  });
  let lines = (): string[] => [];
  const draw = (): void => screen.draw(lines());
  stdout.on('resize', draw);
  // The terminal has gone.
  stdout.on('error', () => ending.end(EXIT.ok));
  try {
    return await ending.repeat(REFRESH_MS, async () => {
      const list = await locks.list(request);
      const listedAt = new Date();
      lines = () => screenLines(list, listedAt, screen.look);
      draw();
    });
  } finally {
    stdout.off('resize', draw);
    screen.close();
  }
}

/** The table below a line that sums it up, above what did not answer; cut off where the terminal ends. */
export function screenLines({ locks, total, unreached }: LockList, listedAt: Date, look: ScreenLook): string[] {
  const waiting = locks.reduce((sum, { waiterCount }) => sum + waiterCount, 0);
  const sum = `${counted(total, 'key', 'keys')}, ${counted(waiting, 'caller waits', 'callers wait')}`;
  const missing = unreachedLines(unreached);
  const rows = Math.max(1, look.rows - missing.length - 4);
  const table = shownLocks(locks, look);
  const more = total - Math.min(rows, locks.length);
  return [
    `${listedAt.toLocaleTimeString('en-GB')}  ${sum}  (q ends)`,
    '',
    ...(locks.length === 0 ? [nothing(missing)] : table.slice(0, rows + 1)),
    ...(more > 0 ? [`… and ${more} more`] : []),
    ...missing,
  ];
}

const nothing = (missing: readonly string[]): string =>
  missing.length === 0 ? 'Nobody holds such a lock, or waits for one.' : 'Who holds a lock is not known:';

const counted = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`;
