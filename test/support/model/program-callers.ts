import { KEPT_MARK, LOCAL_WAITERS_MARK, type AcquireCommand } from '../../../lib/store/lock-store.js';
import type { Ask } from './lock-program.js';
import type { ProgramProcess } from './program-world.js';

/** A token is never used again, as it is with those of the library. */
let sequence = 0;

/** Somebody who asked for a lock. */
export interface Caller {
  readonly process: ProgramProcess;
  readonly command: AcquireCommand;
  /** Whether it has given up, or given back. */
  isOver: boolean;
  /** When it came, among all callers. */
  arrival: number;
  /** How often it has asked to be made the writer. */
  upgrades: number;
}

/** All callers of a program. */
export class Callers {
  readonly all: Caller[] = [];

  add({ keys, sharing, leaseMs, how, label }: Ask, process: ProgramProcess): Caller {
    const runs = how === 'run' && sharing === 'exclusive' && keys.length === 1;
    const token = `${process.source}.${(++sequence).toString(36)}${runs ? LOCAL_WAITERS_MARK : ''}`;
    process.known.add(token);
    const caller = {
      process,
      command: { keys, token, leaseMs, sharing, label, queue: how !== 'try' },
      isOver: false,
      arrival: 0,
      upgrades: 0,
    };
    this.all.push(caller);
    return caller;
  }

  /** It asks, and neither waits nor has anything: it is behind all who asked before. */
  arrives(caller: Caller): void {
    caller.arrival = ++sequence;
  }

  /** Those who have something, or want it. */
  get open(): readonly Caller[] {
    return this.all.filter(({ isOver }) => !isOver);
  }

  of(token: string): Caller {
    return this.all.find(({ command }) => command.token === token || command.token + KEPT_MARK === token)!;
  }
}
