import { exitCodeOf } from '../exit-codes.js';
import { whenNpmEnds } from './npm-parent.js';

/** What ends a process, unless it says otherwise. */
const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;
/** What a command may wait for. */
const OTHERS = ['SIGUSR1', 'SIGUSR2', 'SIGWINCH'] as const;

/** The reason of a wait that a signal has ended. */
export class InterruptedError extends Error {
  readonly exitCode: number;

  constructor(signal: NodeJS.Signals) {
    super(`The wait was ended by ${signal}.`);
    this.exitCode = exitCodeOf(signal);
  }
}

/** Gets the signals of this process: at first for the wait, then for the command. */
export class SignalRelay {
  readonly #interrupt = new AbortController();
  #pass: ((signal: NodeJS.Signals) => void) | undefined;

  constructor(onSuspend: () => void) {
    for (const signal of [...ENDING, ...OTHERS]) process.on(signal, () => this.#got(signal));
    whenNpmEnds(() => this.#got('SIGTERM'));
    // Ctrl-Z: who stands still renews no lock.
    process.on('SIGTSTP', () => (this.#pass ? onSuspend() : process.kill(process.pid, 'SIGSTOP')));
  }

  /** Aborts with an `InterruptedError` at a signal that ends the wait. */
  get interrupted(): AbortSignal {
    return this.#interrupt.signal;
  }

  /** Whether there is a command that gets the signals. */
  get isPassing(): boolean {
    return this.#pass !== undefined;
  }

  /** Passes all signals on from now on. */
  passTo(pass: (signal: NodeJS.Signals) => void): void {
    this.#pass = pass;
  }

  #got(signal: NodeJS.Signals): void {
    if (this.#pass) return this.#pass(signal);
    if (!(ENDING as readonly string[]).includes(signal)) return;
    // The second time, nobody wants to wait until Redis knows.
    if (this.interrupted.aborted) process.exit(exitCodeOf(signal));
    this.#interrupt.abort(new InterruptedError(signal));
  }
}
