import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Section } from './contenders.js';

type Entry = Omit<Section, 'endedAt' | 'isHeld'> & { readonly number: number };
type Renewal = Pick<Entry, 'number' | 'goodUntil'>;
type Exit = Pick<Section, 'endedAt' | 'isHeld'> & { readonly number: number };

/** A file for each process, where it notes who goes in and out: also what one that was killed has done can be read there. */
export class Journals {
  readonly #folder = mkdtempSync(join(tmpdir(), 'journals-'));
  #files = 0;

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
    const { entries, exits } = linesOf(file);
    return entries.length - exits.size;
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true });
  }
}

/** Whoever was killed inside, or lost the lock there, counts until the end of the lease that it knew of last. */
function sectionsOf(file: string): Section[] {
  const { entries, renewals, exits } = linesOf(file);
  return entries.map((entry) => {
    const goodUntil = renewals.get(entry.number)?.goodUntil ?? entry.goodUntil;
    const { isHeld = true, endedAt = goodUntil } = exits.get(entry.number) ?? {};
    return { ...entry, isHeld, goodUntil, endedAt: isHeld ? endedAt : Math.min(endedAt, goodUntil) };
  });
}

function linesOf(file: string) {
  const lines = readFileSync(file, { encoding: 'utf8', flag: 'a+' }).split('\n').slice(0, -1).map((line) => JSON.parse(line) as Entry | Renewal | Exit);
  const exits = lines.filter((line) => 'endedAt' in line);
  const renewals = lines.filter((line) => 'goodUntil' in line);
  return {
    entries: lines.filter((line) => 'beganAt' in line),
    /** The last one of each. */
    renewals: new Map(renewals.map((renewal) => [renewal.number, renewal])),
    exits: new Map(exits.map((exit) => [exit.number, exit])),
  };
}
