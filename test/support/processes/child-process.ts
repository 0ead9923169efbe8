import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { until } from '../deferred.js';

const CHILDREN = fileURLToPath(new URL('./children/', import.meta.url));

/**
 * A real process that runs `test/support/processes/children/<script>`, or a script with an absolute path, against the
 * built package, and talks by messages.
 */
export class TestChild {
  readonly process: ChildProcess;
  readonly #killIt = () => void this.process.kill('SIGKILL');

  constructor(script: string, ...args: (string | number)[]) {
    this.process = fork(resolve(CHILDREN, script), args.map(String), {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      execArgv: [],
    });
    process.once('exit', this.#killIt);
    this.process.once('exit', () => process.off('exit', this.#killIt));
  }

  /** The next message it sends; rejects when it exits first. */
  async message<T>(): Promise<T> {
    const exited = once(this.process, 'exit').then(([code]) =>
      Promise.reject(new Error(`The child exited with ${code} before it said anything.`)),
    );
    const [message] = (await Promise.race([once(this.process, 'message'), exited])) as [T];
    return message;
  }

  send(message: unknown): void {
    this.process.send(message as object);
  }

  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const exited = once(this.process, 'exit');
    this.process.kill(signal);
    await exited;
  }

  /** Stops it (SIGSTOP); resolves when it stands still. */
  async stop(): Promise<void> {
    this.process.kill('SIGSTOP');
    await this.stopped();
  }

  /** Resolves when it stands still: it may stop itself. */
  async stopped(): Promise<void> {
    await until(() => /^State:\s+T/m.test(readFileSync(`/proc/${this.process.pid}/status`, 'utf8')));
  }

  /** Lets it go on. */
  goOn(): void {
    this.process.kill('SIGCONT');
  }

  /** Its exit code. */
  async exit(): Promise<number | null> {
    if (this.process.exitCode === null && this.process.signalCode === null) await once(this.process, 'exit');
    return this.process.exitCode;
  }
}
