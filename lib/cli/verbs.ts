import { REDIS_OPTIONS } from './arguments/help.js';
import type { Options, Verb } from './arguments/verb.js';

const RUN: Verb = {
  name: 'run',
  synopsis: '<key> [options] -- <command> [arguments]',
  summary: 'Runs a command while holding a lock',
  takes: [1, 1],
  takesCommand: true,
  options: {
    wait: { value: '<duration>', help: 'How long to wait for the lock; 0: one try; "forever". Default: 10s' },
    lease: { value: '<duration>', help: 'How long Redis keeps the lock if this machine dies. Default: 30s' },
    skip: { help: 'Ends with 0 if somebody else holds the lock, and does not wait unless --wait says so' },
    'busy-code': { short: 'E', value: '<number>', help: 'Exit code if somebody else holds the lock. Default: 75' },
    'at-least': {
      value: '<duration>',
      help: 'Keeps the lock for at least this long: longer than the clocks of machines with the same cron line differ',
    },
    'max-hold': {
      value: '<duration>',
      help: 'Ends a command that runs for longer, with SIGTERM, and SIGKILL after --grace',
    },
    grace: {
      value: '<duration>',
      help: 'How long the command has between SIGTERM and SIGKILL. Default: a third of the lease, at most 10s',
    },
    permits: { value: '<number>', help: 'Lets so many run at once: a semaphore' },
    label: { value: '<text>', help: 'What "inspect" and errors of others call it. Default: the name of the command' },
    ...REDIS_OPTIONS,
  },
  more: `
The command runs without a shell, in its own session, with LOCK_KEY, LOCK_FENCE and LOCK_TOKEN in its environment.
Signals are passed on to the session. The lock is released when all of the session has ended.

Exit codes: that of the command; 128 + n if signal n ended it; 75 somebody else holds the lock; 69 Redis is down;
77 the lock was lost, or --max-hold was over; 64 wrong usage; 126, 127 the command can't be run, or does not exist.

  nest-redis-lock run nightly --skip --at-least 30s -- /app/nightly.sh
  nest-redis-lock run migrate --wait 5m -- npx prisma migrate deploy`,
  load: async () => (await import('./run/run.js')).run,
};

const JSON_OPTION: Options = { json: { help: 'Prints JSON, for programs' } };

const LS: Verb = {
  name: 'ls',
  synopsis: '[pattern] [options]',
  summary: 'Lists who holds which key since when, and how many wait, over all processes',
  takes: [0, 1],
  options: {
    older: { value: '<duration>', help: 'Lists only keys that are held, or waited for, for at least this long' },
    limit: { value: '<number>', help: 'Lists at most so many keys, those that are held the longest. Default: 1000' },
    watch: { help: 'Lists them anew each second, on the whole terminal; q ends it. With --json: a line each second' },
    ...JSON_OPTION,
    ...REDIS_OPTIONS,
  },
  more: `
A pattern is one of Redis: *, ?, [abc]. Put quotes around it, or the shell reads it.
It asks the live processes, and does not search Redis. What did not answer is named on stderr.

Exit codes: 0 the list is complete; 1 not all answered, so that locks may be missing; 69 Redis is down; 64 wrong usage.

  nest-redis-lock ls 'account:*' --older 1m`,
  load: async () => (await import('./ls/ls.js')).ls,
};

const WATCH: Verb = {
  name: 'watch',
  synopsis: '[pattern] [options]',
  summary: 'Prints what changes about locks, as lines of JSON, until it is ended',
  takes: [0, 1],
  options: {
    every: { value: '<duration>', help: 'How often it looks. What lasts for less can stay unseen. Default: 1s' },
    older: { value: '<duration>', help: 'Follows only keys that are held, or waited for, for at least this long' },
    ...REDIS_OPTIONS,
  },
  more: `
It asks the live processes again and again, as "ls" does, and tells the differences between two looks. "event" is:
  held      when it was first seen, the lock was held already
  acquired  somebody has acquired the lock since the last look
  ended     the lock was released or lost
  orphaned  its process has ended, and Redis keeps the lock until its lease ends
  waiting   another number of callers wait; "before" is the last one
  unreached, reached: a process or a server does not answer, or does so again

Exit codes: 0 its reader has left; 128 + n ended by signal n; 69 Redis is down when it starts; 64 wrong usage.

  nest-redis-lock watch 'account:*' | jq -r 'select(.event == "acquired") | .key'`,
  load: async () => (await import('./watch/watch.js')).watch,
};

const INSPECT: Verb = {
  name: 'inspect',
  synopsis: '<key> [options]',
  summary: 'Shows who holds a lock, and who waits for it',
  takes: [1, 1],
  options: { ...JSON_OPTION, ...REDIS_OPTIONS },
  more: 'Exit codes: 0 it is held; 1 it is free; 69 Redis is down; 64 wrong usage.',
  load: async () => (await import('./inspect/inspect.js')).inspect,
};

const UNLOCK: Verb = {
  name: 'unlock',
  synopsis: '<key> (--token <token> | --force --reason <text>) [options]',
  summary: 'Releases a lock by force',
  takes: [1, 1],
  options: {
    token: { value: '<token>', help: 'Releases the lock of this token only, as "inspect" shows it' },
    force: { help: 'Releases the lock of whoever holds it' },
    reason: { value: '<text>', help: 'Says why, to the process that loses its lock, and in its log' },
    by: { value: '<text>', help: 'Says who does it. Default: the user of this machine' },
    yes: { help: 'Does not ask. Needed without a terminal' },
    ...REDIS_OPTIONS,
  },
  more: `
It shows who holds the lock, and asks. Only the holders that were shown lose it: if another has it by then,
that one keeps it.

Exit codes: 0 released; 1 nothing was released; 130 Ctrl-C; 69 Redis is down; 64 wrong usage.`,
  load: async () => (await import('./unlock/unlock.js')).unlock,
};

const DOCTOR: Verb = {
  name: 'doctor',
  synopsis: '[options]',
  summary: 'Examines the servers that keep the locks, and says what would go wrong',
  takes: [0, 0],
  options: { ...JSON_OPTION, ...REDIS_OPTIONS },
  more: `
It looks at version, eviction, memory, rights, the channel that wakes waiters, round trip and clock of each server,
and takes a lock. It writes only under keys of its own, for a moment.

Exit codes: 0 nothing would go wrong; 1 there are problems; 69 no server can be reached; 64 wrong usage.`,
  load: async () => (await import('./doctor/doctor.js')).doctor,
};

/** All verbs. What they do is loaded when it is asked for, so that the help is there at once. */
export const VERBS: readonly Verb[] = [RUN, LS, WATCH, INSPECT, UNLOCK, DOCTOR];
