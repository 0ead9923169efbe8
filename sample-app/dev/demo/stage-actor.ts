import type { INestApplication } from '@nestjs/common';
import { LockService } from 'nest-redis-lock';
import { Database } from '../../src/database/database.js';
import { StaleFenceError } from '../../src/errors/domain-errors.js';

/** What a process of the live stage tells: its lock, that it stalls now, and how the write after that went. */
export type ActorNews =
  | { readonly lock: 'acquired' | 'released' | 'lost' }
  | { readonly stalls: number }
  | { readonly lateWrite: 'written' | 'refused by its fence' | 'failed' };

/** What the live stage asks of a process: to stop right before its next write. */
export interface ActorCommand {
  readonly stallMs: number;
}

/** Tells the live stage what happens to the locks of this process, and stalls on demand. */
export function playOnStage(app: INestApplication): void {
  app.get(LockService).events.subscribe(({ type }) => {
    if (type === 'acquired' || type === 'released' || type === 'lost') void tell({ lock: type });
  });
  process.on('message', (message) => {
    const { stallMs } = message as Partial<ActorCommand>;
    if (stallMs !== undefined) stallBeforeTheNextWrite(app.get(Database), stallMs);
  });
}

/**
 * Blocks the whole process, as a long garbage collection does, or a virtual machine that is paused. It has looked at its
 * lock for the last time then, and has not yet begun its transaction.
 */
function stallBeforeTheNextWrite(database: Database, stallMs: number): void {
  const transaction = database.transaction.bind(database);
  database.transaction = () => {
    database.transaction = transaction;
    const builder = transaction();
    const execute = builder.execute.bind(builder);
    builder.execute = async (work) => {
      await tell({ stalls: stallMs });
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, stallMs);
      const write = execute(work);
      write.then(
        () => tell({ lateWrite: 'written' }),
        (error: unknown) => tell({ lateWrite: error instanceof StaleFenceError ? 'refused by its fence' : 'failed' }),
      );
      return write;
    };
    return builder;
  };
}

function tell(news: ActorNews): Promise<void> {
  return new Promise((sent) => {
    if (process.connected) process.send!(news, () => sent());
    else sent();
  });
}
