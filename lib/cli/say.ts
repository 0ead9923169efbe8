import { writeSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';

/** Says something to the person at the terminal, or in the mail that cron sends. */
export type Say = (line: string) => unknown;

/**
 * Writes a line to stderr: stdout belongs to what the command is asked for. Not by `process.stderr`, which would make a
 * pipe non-blocking, also for the command that shares it.
 */
export const say: Say = (line) => {
  try {
    writeSync(2, `nest-redis-lock: ${stripVTControlCharacters(line)}\n`);
  } catch {
    // Nobody reads it.
  }
};
