import { spawn, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';
import { until } from '../deferred.js';

/** The command of the built package. */
export const COMMAND = fileURLToPath(new URL('../../../dist/cli/index.js', import.meta.url));

/** A real `nest-redis-lock`, with what it says. */
export class Command {
  /** The wrapper; or the shell around it. */
  readonly process: ChildProcess;
  out = '';
  err = '';
  /** Its exit code; 128 + n for a signal. */
  readonly exit: Promise<number>;
  readonly #killIt = () => void this.process.kill('SIGKILL');

  constructor(
    url: string,
    args: readonly string[],
    /** `shell`: a shell command that runs it as `"$0" "$@"`. */
    { shell }: { readonly shell?: string } = {},
  ) {
    const command = [process.execPath, COMMAND, ...args];
    const [file, ...rest] = shell === undefined ? command : ['sh', '-c', shell, ...command];
    this.process = spawn(file!, rest, { env: { ...process.env, REDIS_URL: url } });
    this.process.stdout?.on('data', (chunk: Buffer) => (this.out += chunk.toString()));
    this.process.stderr?.on('data', (chunk: Buffer) => (this.err += chunk.toString()));
    process.once('exit', this.#killIt);
    this.exit = new Promise((resolve) =>
      this.process.once('close', (code, signal) => {
        process.off('exit', this.#killIt);
        resolve(signal ? 128 + constants.signals[signal] : code!);
      }),
    );
  }

  /** Resolves with what follows this word on a line of stdout. */
  async said(word: string): Promise<string> {
    const line = new RegExp(`^${word} ?(.*)\\n`, 'm');
    await until(() => line.test(this.out));
    return line.exec(this.out)![1]!;
  }

  /** Sends a signal to the wrapper alone. */
  signal(signal: NodeJS.Signals): void {
    this.process.kill(signal);
  }
}

/** Whether a process still runs. */
export function isRunning(pid: number | string): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
