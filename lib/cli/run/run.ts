import { basename } from 'node:path';
import type { Lock } from '../../core/lock/lock.js';
import { LONGEST_LABEL, SMALLEST_LEASE_MS } from '../../core/request/lock-options.js';
import { LockTimeoutError } from '../../errors/lock-timeout.error.js';
import { quoted } from '../../errors/messages.js';
import type { Arguments } from '../arguments/arguments.js';
import { UsageError } from '../arguments/usage.error.js';
import type { Action } from '../arguments/verb.js';
import { EXIT } from '../exit-codes.js';
import { duration, inTime, number, openLocks, type OpenLocks } from '../redis/open-locks.js';
import type { Say } from '../say.js';
import { HeldCommand } from './held-command.js';
import { NotStartedError, ProcessGroup } from './process-group.js';
import { WatcherProcess } from './watcher-process.js';
import { InterruptedError, SignalRelay } from './signal-relay.js';

const LEASE_MS = 30_000;
const WAIT_MS = 10_000;
/** The default of `--grace`: a third of the lease, at most so many ms. */
const MOST_GRACE_MS = 10_000;

/** Runs a command while holding a lock. Resolves with the exit code. */
export const run: Action = async (given, say) => {
  if (process.platform === 'win32')
    throw new UsageError('"run" ends a command by its process group, which Windows has not.');
  const options = runOptions(given);
  const signals = new SignalRelay(() => say('Ctrl-Z does nothing here: a process that stands still loses its lock.'));
  const log: Say = (line) => signals.isPassing && say(line);
  const opened = openLocks(given, { warn: say, log }, { lease: options.lockOptions.lease });
  try {
    const held = await acquire(opened, given.words[0]!, { ...options.lockOptions, signal: signals.interrupted });
    return await runHeld(held, { given, signals, say, opened, ...options });
  } catch (error) {
    if (error instanceof InterruptedError) return error.exitCode;
    if (error instanceof LockTimeoutError) {
      if (options.isSkipped) return EXIT.ok;
      say(error.detail);
      return options.busyCode;
    }
    throw error;
  } finally {
    await opened.close();
  }
};

function runOptions(given: Arguments) {
  const lease = duration(given, 'lease', SMALLEST_LEASE_MS) ?? LEASE_MS;
  const graceMs = duration(given, 'grace', 0) ?? Math.min(MOST_GRACE_MS, lease / 3);
  if (graceMs > lease / 2)
    throw new UsageError(`--grace is ${graceMs} ms, but must be at most half of the lease (${lease} ms).`);
  const isSkipped = given.flag('skip');
  const wait = given.text('wait') === 'forever' ? Infinity : (duration(given, 'wait', 0) ?? (isSkipped ? 0 : WAIT_MS));
  const label = given.text('label') ?? basename(given.command[0]!).slice(0, LONGEST_LABEL);
  const [atLeast, permits] = [duration(given, 'at-least', 0), number(given, 'permits', 1, 1_000_000)];
  return {
    isSkipped,
    busyCode: number(given, 'busy-code', 0, 255) ?? EXIT.busy,
    graceMs,
    maxHoldMs: duration(given, 'max-hold', 1),
    lockOptions: {
      wait,
      lease,
      permits,
      label: label || undefined,
      ...(atLeast === undefined ? {} : { atLeast }),
    },
  };
}

type RunOptions = ReturnType<typeof runOptions>;

interface HeldLock {
  readonly lock: Lock;
  /** Calls this with what is left of the lease, in ms, whenever it is renewed. */
  onRenewal: (leftMs: number) => void;
}

/** Acquires the lock, and follows its renewals: only those who listen before hear of them. */
async function acquire(
  { locks }: OpenLocks,
  key: string,
  options: RunOptions['lockOptions'] & { readonly signal: AbortSignal },
): Promise<HeldLock> {
  const held = { onRenewal: (_leftMs: number): void => undefined };
  locks.events.subscribe((event) => {
    if (event.type === 'renewed') held.onRenewal(event.remainingMs);
  });
  const lock = await locks.lock(key, options);
  return Object.assign(held, { lock });
}

interface Run extends RunOptions {
  readonly given: Arguments;
  readonly signals: SignalRelay;
  readonly say: Say;
  readonly opened: OpenLocks;
}

async function runHeld(held: HeldLock, { given, signals, say, opened, ...options }: Run): Promise<number> {
  const { lock } = held;
  const { key, fence, token } = lock;
  let watcher: WatcherProcess | undefined;
  try {
    signals.interrupted.throwIfAborted();
    // First, so that there is no moment in which nobody watches the command.
    watcher = new WatcherProcess(token, say);
    const env = { ...process.env, LOCK_KEY: key, LOCK_FENCE: String(fence), LOCK_TOKEN: token };
    // Last, because to start a process takes long on a busy machine.
    lock.assertHeld();
    const started = ProcessGroup.start(given.command, env);
    const group = started instanceof ProcessGroup ? started : await started;
    const command = new HeldCommand(group, { lock, watcher, say, ...options });
    held.onRenewal = (leftMs) => command.renewed(leftMs);
    signals.passTo((signal) => group.signal(signal));
    const exitCode = await command.ended();
    watcher.end();
    const isKept = await release(lock, opened);
    if (command.loss) return EXIT.lost;
    if (!isKept) {
      say(`The lock ${quoted(key)} was lost while the command ran, which ended with ${exitCode}.`);
      return EXIT.lost;
    }
    // A command that ended with 0 before its lock was lost has done its work. One that was too slow may be cut off.
    const isCutOff = command.stopped === 'maxHold' || (command.stopped === 'losing' && exitCode !== 0);
    return isCutOff ? EXIT.lost : exitCode;
  } catch (error) {
    watcher?.end();
    await release(lock, opened);
    if (!(error instanceof NotStartedError)) throw error;
    say(error.message);
    return error.exitCode;
  }
}

/** Releases the lock. @returns whether it was held until then, as far as Redis says so in time */
async function release(lock: Lock, { commandTimeoutMs }: OpenLocks): Promise<boolean> {
  let isKept = true;
  await inTime(
    lock.unlock().then((kept) => (isKept = kept)),
    commandTimeoutMs,
  );
  return isKept;
}
