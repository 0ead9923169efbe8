import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { EXIT, exitCodeOf } from '../exit-codes.js';
import { liveProcesses } from './processes.js';

/** How often to look whether a group is gone, in ms: first, and at most. */
const [LOOKS_FIRST_MS, LOOKS_EVERY_MS] = [5, 250];

/** A command that can't be started. */
export class NotStartedError extends Error {
  constructor(
    command: string,
    cause: NodeJS.ErrnoException,
    /** As a shell says it. */
    readonly exitCode: number = cause.code === 'ENOENT' ? EXIT.notFound : EXIT.notExecutable,
  ) {
    const why =
      cause.code === 'ENOENT' ? 'there is no such command' : `it can't be run (${cause.code ?? cause.message})`;
    super(`${JSON.stringify(command)}: ${why}.`);
  }
}

/**
 * A command in a process group of its own, with what it has started in turn. It is the leader of a new session, too: a
 * process group beside that of the terminal would be stopped when it reads from there.
 */
export class ProcessGroup {
  readonly id: number;
  /** Resolves with the exit code of the command itself when that has ended: 128 + n for a signal. */
  readonly commandEnded: Promise<number>;

  private constructor(id: number, commandEnded: Promise<number>) {
    this.id = id;
    this.commandEnded = commandEnded;
  }

  /**
   * Starts a command without a shell, on the stdin, stdout and stderr of this process. The command runs when this
   * returns.
   *
   * @throws NotStartedError, by the returned promise
   */
  static start([file = '', ...args]: readonly string[], env: NodeJS.ProcessEnv): ProcessGroup | Promise<never> {
    try {
      const child = spawn(file, args, { detached: true, stdio: 'inherit', env });
      if (child.pid === undefined)
        return once(child, 'error').then(([error]) => Promise.reject(new NotStartedError(file, error as Error)));
      const commandEnded = new Promise<number>((resolve) =>
        child.once('exit', (code, signal) => resolve(signal ? exitCodeOf(signal) : code!)),
      );
      return new ProcessGroup(child.pid, commandEnded);
    } catch (error) {
      return Promise.reject(new NotStartedError(file, error as Error));
    }
  }

  /** Sends a signal to all processes of the group. */
  signal(signal: NodeJS.Signals): void {
    try {
      process.kill(-this.id, signal);
    } catch {
      // None is left.
    }
  }

  /** Resolves when the command and all that it has started in its group have ended. */
  async gone(): Promise<void> {
    for (let waitMs = LOOKS_FIRST_MS; this.#isAlive; waitMs = Math.min(2 * waitMs, LOOKS_EVERY_MS)) await sleep(waitMs);
  }

  get #isAlive(): boolean {
    try {
      process.kill(-this.id, 0);
    } catch (error) {
      // EPERM: only processes of another user are left.
      if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false;
    }
    return this.members?.length !== 0;
  }

  /** The processes of the group that have not ended. Undefined where there is no /proc. */
  get members(): readonly number[] | undefined {
    return liveProcesses()
      ?.filter(({ group }) => group === this.id)
      .map(({ pid }) => pid);
  }
}
