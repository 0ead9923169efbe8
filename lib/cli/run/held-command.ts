import type { Lock } from '../../core/lock/lock.js';
import { LONGEST_TIMER_MS } from '../../clock/deadline.js';
import { onAbort } from '../../clock/on-abort.js';
import type { LockLostError } from '../../errors/lock-lost.error.js';
import { quoted } from '../../errors/messages.js';
import { shownDuration } from '../../service/outage-reporter.js';
import type { Say } from '../say.js';
import type { ProcessGroup } from './process-group.js';
import type { WatcherProcess } from './watcher-process.js';

/** How much before the end of the lease the command is killed: this part of what is left of it, at most so many ms. */
const [KILL_EARLY, KILL_EARLY_MS] = [0.02, 500];
/** How long nothing is said of what the command leaves running, in ms. */
const LEFT_OVER_MS = 1000;
/** How long to wait for what was killed, in ms. A process may hang in the kernel. */
const DYING_MS = 5000;

export interface HeldCommandOptions {
  readonly lock: Lock;
  readonly watcher: WatcherProcess;
  /** How long the command has between SIGTERM and SIGKILL. */
  readonly graceMs: number;
  readonly maxHoldMs: number | undefined;
  readonly say: Say;
}

/**
 * Ends a command before its lock ends: with SIGTERM a grace before the end of the lease, and with SIGKILL before Redis
 * may grant the lock to somebody else. Each renewal puts both off.
 */
export class HeldCommand {
  /** Why the command was told to stop, if it was: not only what it has started, after its end. */
  stopped: 'losing' | 'maxHold' | undefined;
  /** How the lock was lost, if it was. */
  loss: LockLostError | undefined;
  readonly #group: ProcessGroup;
  readonly #options: HeldCommandOptions;
  readonly #stopListening: () => void;
  readonly #killIfLeft = () => this.#group.signal('SIGKILL');
  #renewals = 0;
  #term: NodeJS.Timeout | undefined;
  #kill: NodeJS.Timeout | undefined;
  #maxHold: NodeJS.Timeout | undefined;
  #gaveUp!: () => void;
  #hasEnded = false;
  readonly #givenUp = new Promise<void>((resolve) => (this.#gaveUp = resolve));

  constructor(group: ProcessGroup, options: HeldCommandOptions) {
    const { lock, watcher, maxHoldMs } = options;
    this.#group = group;
    this.#options = options;
    watcher.watch(group.id);
    process.once('exit', this.#killIfLeft);
    this.#stopListening = onAbort(lock.signal, () => this.#lost(lock.signal.reason as LockLostError));
    this.renewed(lock.remaining());
    if (maxHoldMs !== undefined && maxHoldMs <= LONGEST_TIMER_MS)
      this.#maxHold = setTimeout(() => this.#heldTooLong(maxHoldMs), maxHoldMs);
    if (lock.signal.aborted) this.#lost(lock.signal.reason as LockLostError);
  }

  /** Counts anew: the lock is good for so many ms from now on. */
  renewed(leftMs: number): void {
    if (this.loss) return;
    const killMs = leftMs - Math.min(KILL_EARLY_MS, leftMs * KILL_EARLY);
    // A lock that was waited for is good for 5 s at first, whatever its lease.
    const termMs = killMs - Math.min(this.#options.graceMs, killMs / 2);
    this.#options.watcher.killIn(killMs);
    this.#disarm();
    if (killMs > LONGEST_TIMER_MS) return;
    const renewals = this.#renewals;
    // If this process stood still, the news that put this off may have come: they are read before the immediate.
    const unlessRenewed = (work: () => void) => () => setImmediate(() => renewals === this.#renewals && work());
    this.#term = setTimeout(
      unlessRenewed(() => this.#losing(killMs - termMs)),
      termMs,
    );
    this.#kill = setTimeout(() => this.#ending(), killMs);
  }

  /**
   * Resolves with the exit code of the command when nothing of its group is left. What it has started runs under the
   * lock, too.
   */
  async ended(): Promise<number> {
    const { lock, say } = this.#options;
    const exitCode = await Promise.race([this.#group.commandEnded, this.#givenUp]);
    this.#hasEnded = true;
    const tell = setTimeout(() => {
      const pids = this.#group.members?.join(', ');
      say(
        `The command has ended, but what it started still runs${pids ? ` (pid ${pids})` : ''}. ` +
          `The lock ${quoted(lock.key)} stays until that has ended, too.`,
      );
    }, LEFT_OVER_MS);
    await Promise.race([this.#group.gone(), this.#givenUp]);
    clearTimeout(tell);
    this.#disarm();
    clearTimeout(this.#maxHold);
    this.#stopListening();
    process.off('exit', this.#killIfLeft);
    return exitCode ?? 0;
  }

  #losing(graceMs: number): void {
    const { lock, say } = this.#options;
    if (this.loss) return;
    if (!this.#hasEnded) this.stopped ??= 'losing';
    say(
      `Redis has not renewed the lock ${quoted(lock.key)}: the command gets SIGTERM now, ` +
        `and SIGKILL in ${shownDuration(graceMs)}, unless the lock is renewed before.`,
    );
    this.#group.signal('SIGTERM');
  }

  #ending(): void {
    this.#group.signal('SIGKILL');
    this.#options.say(`The lock ${quoted(this.#options.lock.key)} is about to end: the command was killed.`);
  }

  #lost(loss: LockLostError): void {
    if (this.loss) return;
    this.loss = loss;
    // Somebody else may have the lock by now.
    this.#group.signal('SIGKILL');
    this.#options.say(`${loss.detail} The command was killed.`);
    setTimeout(this.#gaveUp, DYING_MS).unref();
  }

  #heldTooLong(maxHoldMs: number): void {
    const { graceMs, say } = this.#options;
    if (!this.#hasEnded) this.stopped = 'maxHold';
    say(
      `The command has run for ${shownDuration(maxHoldMs)} (--max-hold): it gets SIGTERM now, ` +
        `and SIGKILL in ${shownDuration(graceMs)}.`,
    );
    this.#group.signal('SIGTERM');
    this.#maxHold = setTimeout(this.#killIfLeft, graceMs);
  }

  #disarm(): void {
    this.#renewals++;
    clearTimeout(this.#term);
    clearTimeout(this.#kill);
  }
}
