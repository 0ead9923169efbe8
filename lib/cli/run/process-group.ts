import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { json, withoutLogin } from '../../errors/messages.js';
import { EXIT, exitCodeOf } from '../exit-codes.js';
import { membersOfSession, signalSession } from './processes.js';

/** How often to look whether all is gone, in ms: first, and at most. */
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
    super(`${json(withoutLogin(command))}: ${why}.`);
  }
}

/**
 * A command in a process group of its own, with what it has started in turn. It is the leader of a new session, too: a
 * process group beside that of the terminal would be stopped when it reads from there. What it starts may make groups
 * of their own, as `timeout` does; so all that is in the session belongs to it.
 */
export class ProcessGroup {
  readonly id: number;
  /** Resolves with the exit code of the command itself when that has ended: 128 + n for a signal. */
  readonly commandEnded: Promise<number>;
  readonly #token: string;
  #isKilled = false;

  private constructor(id: number, token: string, commandEnded: Promise<number>) {
    this.id = id;
    this.#token = token;
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
      return new ProcessGroup(child.pid, env['LOCK_TOKEN'] ?? '', commandEnded);
    } catch (error) {
      return Promise.reject(new NotStartedError(file, error as Error));
    }
  }

  /** Sends a signal to all processes of the session. */
  signal(signal: NodeJS.Signals): void {
    this.#isKilled ||= signal === 'SIGKILL';
    signalSession(this.id, signal);
  }

  /** Resolves when the command and all that it has started in its session have ended. */
  async gone(): Promise<void> {
    for (let waitMs = LOOKS_FIRST_MS; this.#isAlive; waitMs = Math.min(2 * waitMs, LOOKS_EVERY_MS)) {
      // What was just about to make a group of its own may have missed it.
      if (this.#isKilled) this.signal('SIGKILL');
      await sleep(waitMs);
    }
  }

  get #isAlive(): boolean {
    const { members } = this;
    if (members) return members.length > 0;
    try {
      return process.kill(-this.id, 0);
    } catch (error) {
      // EPERM: only processes of another user are left.
      return (error as NodeJS.ErrnoException).code === 'EPERM';
    }
  }

  /** What has not ended yet, by `membersOfSession`. Undefined where there is no /proc. */
  get members(): readonly number[] | undefined {
    return membersOfSession(this.id, this.#token)?.map(({ pid }) => pid);
  }
}
