import { MOST_CALLS, type CallLists, type OwnCall } from '../../core/list/calls-question.js';
import { First } from '../../core/list/first.js';
import type { KnownProcess } from './process-book.js';

/** What a process says of its calls. */
export interface CallsOfProcess {
  readonly process: KnownProcess;
  readonly part: CallLists;
}

interface ProcessCall {
  readonly process: KnownProcess;
  readonly call: OwnCall;
}

/**
 * Returns the calls of all processes, since the longest time first: as many as are shown, so that no other costs a row.
 */
export function longestCalls(parts: readonly CallsOfProcess[], of: 'held' | 'waiting'): readonly ProcessCall[] {
  const first = new First<ProcessCall>(MOST_CALLS, (one, other) => msOf(other) - msOf(one));
  for (const { process, part } of parts) for (const call of part[of].items) first.add({ process, call });
  return first.items();
}

/** A process that is silent may have held it longer by now. */
const msOf = ({ process, call }: ProcessCall): number => call.ms + process.silentMs;
