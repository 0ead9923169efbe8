import {
  closeSync,
  fstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  watch,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Section } from './contenders.js';

type Entry = Omit<Section, 'endedAt' | 'isHeld'>;
type Exit = Pick<Section, 'endedAt' | 'isHeld' | 'abortedAt' | 'lost'>;
type After = Pick<Section, 'unlocked' | 'unlockedAt' | 'refused'>;

/**
 * What a holder saw while it was inside: whether its signal had aborted, and until when its lease lasts, if it does.
 */
interface Look {
  readonly lookedAt: number;
  readonly aborted: boolean;
  readonly goodUntil?: number;
}

/** A line is about the stay with this number in its process. */
type Line = { readonly number: number } & (Entry | Look | Exit | After);

/**
 * A file for each process, where it notes who goes in and out: also what one that was killed has done can be read
 * there.
 */
export class Journals {
  readonly #folder = mkdtempSync(join(tmpdir(), 'journals-'));
  #files = 0;
  readonly #read = new Map<string, { bytes: number; entered: number; left: number }>();

  /** A file for one more process. */
  next(): string {
    return join(this.#folder, `${++this.#files}.jsonl`);
  }

  /** What all of them did, by the time of entry. */
  sections(): Section[] {
    const sections = readdirSync(this.#folder).flatMap((name) => sectionsOf(join(this.#folder, name)));
    return sections.sort((a, b) => a.beganAt - b.beganAt);
  }

  /** How many of the process with this file are inside. */
  inside(file: string): number {
    const { entered, left } = this.#follow(file);
    return entered - left;
  }

  /** How often one of the process with this file has been let in. */
  entered(file: string): number {
    return this.#follow(file).entered;
  }

  /** Reads only what is new. */
  #follow(file: string): { readonly entered: number; readonly left: number } {
    const read = this.#read.get(file) ?? { bytes: 0, entered: 0, left: 0 };
    this.#read.set(file, read);
    const news = readFrom(file, read.bytes);
    const whole = news.subarray(0, news.lastIndexOf('\n') + 1);
    read.bytes += whole.length;
    for (const line of whole.toString().split('\n')) {
      if (line.includes('"beganAt"')) read.entered++;
      if (line.includes('"endedAt"')) read.left++;
    }
    return read;
  }

  /** Resolves when the condition holds: looks whenever somebody has noted something. */
  when(condition: () => boolean, patienceMs = 20_000): Promise<void> {
    return new Promise((resolve, reject) => {
      const look = () => condition() && end(resolve);
      const watcher = watch(this.#folder, look);
      const timer = setTimeout(
        () => end(() => reject(new Error(`This never came true: ${condition.toString()}`))),
        patienceMs,
      );
      const end = (settle: () => void) => {
        clearTimeout(timer);
        watcher.close();
        settle();
      };
      look();
    });
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true });
  }
}

/** Whoever was killed inside, or lost the lock there, counts until the end of the lease that it knew of last. */
function sectionsOf(file: string): Section[] {
  const stays = new Map<number, Line[]>();
  for (const text of readFileSync(file, 'utf8').split('\n').slice(0, -1)) {
    const line = JSON.parse(text) as Line;
    if ('beganAt' in line) stays.set(line.number, [line]);
    else stays.get(line.number)!.push(line);
  }
  return [...stays.values()].map(sectionOf);
}

function sectionOf(lines: readonly Line[]): Section {
  const looks = lines.filter((line): line is Line & Look => 'lookedAt' in line);
  const exit = lines.find((line): line is Line & Exit => 'endedAt' in line);
  const entry = lines[0] as Entry;
  const goodUntil = looks.reduce((until, look) => look.goodUntil ?? until, entry.goodUntil);
  const silentAt = looks.find(
    ({ lookedAt, aborted, goodUntil: left }) => !aborted && left === undefined && lookedAt > goodUntil,
  )?.lookedAt;
  const { isHeld = true, endedAt = goodUntil } = exit ?? {};
  const noted = Object.assign({}, ...lines.filter((line) => !('lookedAt' in line))) as Section;
  return {
    ...noted,
    isHeld,
    goodUntil,
    endedAt: isHeld ? endedAt : Math.min(endedAt, goodUntil),
    ...(exit && { wroteAt: exit.endedAt }),
    ...(silentAt !== undefined && { silentAt }),
  };
}

function readFrom(file: string, at: number): Buffer {
  const opened = openSync(file, 'a+');
  try {
    const news = Buffer.alloc(fstatSync(opened).size - at);
    return news.subarray(0, readSync(opened, news, 0, news.length, at));
  } finally {
    closeSync(opened);
  }
}
