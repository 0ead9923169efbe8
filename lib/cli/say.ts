import { write } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';

/** Says something to the person at the terminal, or in the mail that cron sends. */
export type Say = (line: string) => unknown;

let said = Promise.resolve();

/**
 * Writes a line to stderr: stdout belongs to what the command is asked for. Not by `process.stderr`, which would make a
 * pipe non-blocking, also for the command that shares it. And not synchronously: the reader of the pipe may have
 * paused, and a process that blocks on the pipe renews no lock.
 */
export const say: Say = (line) => {
  const text = `nest-redis-lock: ${stripVTControlCharacters(line)}\n`;
  // If nobody reads it any more, that is no error.
  said = said.then(() => new Promise((resolve) => write(2, text, () => resolve())));
};

/** Resolves when all lines have been written. */
export const allSaid = (): Promise<void> => said;
