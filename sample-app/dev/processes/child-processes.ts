import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Message } from './run-process.js';

/** How long a child may take to stop before it is killed. Longer than the app takes to let go of its locks. */
const STOP_WITHIN_MS = 8_000;

export interface ChildOptions {
  readonly args?: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
  /** Hides what the child prints, except errors. */
  readonly quiet?: boolean;
}

export interface Started<Report> {
  readonly report: Report;
  readonly ended: Promise<unknown>;
}

/** A process that this one has started. */
export interface StartedChild<Report> extends Started<Report> {
  readonly pid: number;
  /** Hears what it says after its report. */
  onMessage(listener: (message: unknown) => void): void;
  send(message: object): void;
  stop(): Promise<void>;
  /** Ends it at once, by SIGKILL. */
  kill(): void;
}

/** The processes this one has started, and must not leave behind. */
export class ChildProcesses {
  readonly #children: ChildProcess[] = [];
  #isStopping = false;

  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** Starts a script that uses `runProcess`, and waits until it says that it is ready. */
  async start<Report>(
    script: URL,
    { args = [], env = {}, quiet = false }: ChildOptions = {},
  ): Promise<StartedChild<Report>> {
    const child = fork(fileURLToPath(script), args, {
      env: { ...process.env, ...env },
      stdio: ['ignore', quiet ? 'ignore' : 'inherit', 'inherit', 'ipc'],
      // Ctrl-C reaches the whole process group. In one of its own a child stops when we say so: the app before its
      // Redis.
      detached: true,
    });
    this.#children.unshift(child);

    const ended = once(child, 'exit');
    const failure = ended.then(() => ({ failed: `${basename(script.pathname)} ended before it was ready.` }));
    const message = once(child, 'message').then(([received]) => received as Message<Report>);
    const answer = await Promise.race([message, failure]);
    if ('failed' in answer) throw new Error(answer.failed);
    return {
      report: answer.ready,
      ended,
      pid: child.pid!,
      onMessage: (listener) => void child.on('message', listener),
      send: (message) => void (child.connected && child.send(message)),
      stop: () => stopChild(child),
      kill: () => void child.kill('SIGKILL'),
    };
  }

  /** Stops them all, the last one started first, and ends this process. The first call decides the exit code. */
  async exit(exitCode: number): Promise<void> {
    if (this.#isStopping) return;
    this.#isStopping = true;
    for (const child of this.#children) await stopChild(child);
    process.exit(exitCode);
  }
}

async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  const killing = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS);
  if (child.connected) child.disconnect();
  await ended;
  clearTimeout(killing);
}
