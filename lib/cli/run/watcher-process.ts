import { spawn, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Say } from '../say.js';
import { ownSession } from './processes.js';
import { INSIDE, sessionName, sharedNow, WATCHED } from './watched.js';

/** In the package, this file is part of dist/cli/run.js, beside the watcher. */
const FILE = fileURLToPath(new URL('./watcher.js', import.meta.url));

/** How often the watcher is started again when it ends too early. */
const MOST_STARTS = 5;

/** The process that kills a command in time if this one can't: see `watcher.ts`. */
export class WatcherProcess {
  readonly #token: string;
  readonly #say: Say;
  #process: ChildProcess | undefined;
  #groupId: number | undefined;
  #until = Infinity;
  #starts = 0;

  /**
   * @param token what the command will have as LOCK_TOKEN: so it is found also if this process is killed while it
   * starts
   */
  constructor(token: string, say: Say) {
    this.#token = token;
    this.#say = say;
    this.#start();
  }

  /** Says which group to kill, when the command has started. */
  watch(groupId: number): void {
    this.#groupId = groupId;
    this.#write(`group ${groupId}\n`);
  }

  /** Lets it kill the group in so many ms from now, unless it hears of another time before. */
  killIn(ms: number): void {
    this.#until = sharedNow() + ms;
    this.#write(`until ${this.#until}\n`);
  }

  /** Ends it, without a kill. */
  end(): void {
    this.#starts = MOST_STARTS;
    this.#process?.removeAllListeners('exit');
    this.#write('end\n');
    this.#process = undefined;
  }

  #start(): void {
    this.#starts++;
    // A session of its own: neither Ctrl-C nor a kill of this process's group must end it. It knows at once what is
    // known now, and the rest waits in its pipe until it has started: this process may be killed before that.
    const watcher = spawn(process.execPath, [FILE], {
      cwd: '/',
      detached: true,
      env: {
        ...process.env,
        // It is none of the processes of a command. But a command that `run` starts for another command has it.
        LOCK_TOKEN: '',
        [INSIDE]: sessionName(ownSession() ?? 0, process.env['LOCK_TOKEN'] ?? ''),
        NODE_OPTIONS: '',
        // It connects nowhere, and a relative path leads elsewhere from "/".
        NODE_EXTRA_CA_CERTS: '',
        [WATCHED]: [this.#token, this.#groupId ?? '', this.#until].join(' '),
      },
      stdio: ['pipe', 'ignore', 'inherit'],
    });
    this.#process = watcher;
    watcher.unref();
    watcher.stdin.on('error', () => undefined);
    watcher.once('error', () => this.#ended());
    watcher.once('exit', () => this.#ended());
  }

  #ended(): void {
    this.#process = undefined;
    if (this.#starts < MOST_STARTS) return this.#start();
    this.#say(
      'The process that watches this one ends again and again: if this one is killed now, the command goes on.',
    );
  }

  #write(line: string): void {
    if (this.#process?.stdin?.writable) this.#process.stdin.write(line);
  }
}
