import { constants } from 'node:os';

/** What the command says by its exit code. Where BSD's sysexits.h has a code for it, it is that one. */
export const EXIT = {
  ok: 0,
  /** `doctor` found a problem; `inspect` and `unlock` found no lock; to `ls`, not all answered. */
  no: 1,
  /** EX_USAGE: the command line is wrong. */
  usage: 64,
  /** EX_UNAVAILABLE: Redis does not answer, or refuses. */
  unavailable: 69,
  /** EX_SOFTWARE: a bug. */
  bug: 70,
  /** EX_IOERR: what it prints could not be written, for example because the disk is full. */
  unwritten: 74,
  /** EX_TEMPFAIL: somebody else holds the lock. */
  busy: 75,
  /** The lock was lost while the command ran, or the command was stopped before that. */
  lost: 77,
  /** As in a shell: the command is there, but can't be run. */
  notExecutable: 126,
  /** As in a shell: there is no such command. */
  notFound: 127,
} as const;

/** The exit code of a process that a signal has ended, as a shell says it. */
export const exitCodeOf = (signal: NodeJS.Signals): number => 128 + constants.signals[signal];

const BY_ERROR: Readonly<Record<string, number>> = {
  LOCK_TIMEOUT: EXIT.busy,
  LOCK_UNAVAILABLE: EXIT.unavailable,
  LOCK_LOST: EXIT.lost,
  LOCK_KEY_INVALID: EXIT.usage,
  LOCK_OPTIONS_INVALID: EXIT.usage,
};

/** The exit code for a lock error; undefined for any other. By its code, so that nothing is loaded for it. */
export const exitCodeFor = (error: unknown): number | undefined =>
  BY_ERROR[(error as { code?: string } | null)?.code ?? ''];
