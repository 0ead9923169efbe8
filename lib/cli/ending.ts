import { timerAt, now } from '../clock/deadline.js';
import { EXIT, exitCodeOf } from './exit-codes.js';
import { whenNpmEnds } from './run/npm-parent.js';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;

/** The end of a command that goes on until somebody ends it: by a signal, or in another way that it notices. */
export class Ending {
  readonly #isOver = new AbortController();
  #exitCode: number = EXIT.ok;

  /** Listens to signals from now on. */
  constructor() {
    for (const signal of SIGNALS) process.on(signal, () => this.#got(signal));
    whenNpmEnds(() => this.#got('SIGTERM'));
  }

  /** Ends it with this exit code, unless it has ended. */
  end(exitCode: number): void {
    if (this.#isOver.signal.aborted) return;
    this.#exitCode = exitCode;
    this.#isOver.abort();
  }

  /** Does something again and again, until the end. Resolves with the exit code. */
  async repeat(everyMs: number, work: () => Promise<unknown>): Promise<number> {
    const { signal } = this.#isOver;
    while (!signal.aborted) {
      const nextAt = now() + everyMs;
      await this.#unlessOver(work());
      await this.#unlessOver(new Promise<void>((resolve) => timerAt(nextAt, resolve)));
    }
    return this.#exitCode;
  }

  #unlessOver(work: Promise<unknown>): Promise<unknown> {
    const { signal } = this.#isOver;
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const over = () => resolve(undefined);
      signal.addEventListener('abort', over, { once: true });
      work.then(resolve, reject).finally(() => signal.removeEventListener('abort', over));
    });
  }

  #got(signal: NodeJS.Signals): void {
    // The second time, nobody wants to wait until the connections are closed.
    if (this.#isOver.signal.aborted) process.exit(exitCodeOf(signal));
    this.end(exitCodeOf(signal));
  }
}
