/** A screen of its own, without a cursor, on which a line that is too long is cut off. */
const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l';
const LEAVE = '\x1b[?7h\x1b[?25h\x1b[?1049l';
const [TOP, END_OF_LINE, REST] = ['\x1b[H', '\x1b[K', '\x1b[J'];
const CTRL_Z = '\x1a';
/** The size of a terminal that says none. */
const [COLUMNS, ROWS] = [80, 24];

/** How much fits on a terminal, and what it can show. */
export interface ScreenLook {
  readonly columns: number;
  readonly rows: number;
  readonly hasColours: boolean;
}

/** The terminal as something to draw on. Whatever ends this process, but SIGKILL, the terminal is as it was before. */
export class Screen {
  readonly #onKey: (key: string) => void;
  #isOpen = false;
  readonly #restore = (): void => this.#leave();

  /** @param onKey hears of each key that is typed */
  constructor(onKey: (key: string) => void) {
    this.#onKey = onKey;
    process.on('exit', this.#restore);
    if (process.stdin.isTTY) process.stdin.setEncoding('utf8').on('data', (keys: string) => this.#typed(keys));
    this.#enter();
  }

  /** As it is now: a terminal changes its size. */
  get look(): ScreenLook {
    const { columns, rows } = process.stdout;
    return { columns: columns || COLUMNS, rows: rows || ROWS, hasColours: process.stdout.hasColors() };
  }

  /** Draws over what was there. Lines that don't fit are left out at the end. */
  draw(lines: readonly string[]): void {
    if (!this.#isOpen) return;
    const shown = lines.slice(0, this.look.rows).map((line) => line + END_OF_LINE);
    process.stdout.write(TOP + shown.join('\r\n') + REST);
  }

  /** Gives the terminal back. */
  close(): void {
    process.off('exit', this.#restore);
    this.#leave();
    process.stdin.pause();
  }

  #enter(): void {
    this.#isOpen = true;
    if (process.stdin.isTTY) process.stdin.setRawMode(true);
    process.stdout.write(ENTER);
  }

  #leave(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    process.stdout.write(LEAVE);
    if (process.stdin.isTTY) process.stdin.setRawMode(false);
  }

  #typed(keys: string): void {
    for (const key of keys) {
      if (key === CTRL_Z) this.#suspend();
      else this.#onKey(key);
    }
  }

  /** Stands still, with all of this command line, until the shell lets it go on. */
  #suspend(): void {
    this.#leave();
    process.kill(0, 'SIGTSTP');
    // The signal may come a moment later.
    setTimeout(() => this.#enter(), 100);
  }
}
