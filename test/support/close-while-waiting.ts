import { expect } from '@jest/globals';
import type { INestApplicationContext } from '@nestjs/common';
import { LockService } from 'nest-redis-lock';
import { turn } from './deferred.js';

/** Closes an app while a call waits for a lock and another one comes: the app refuses both. */
export async function closeWhileWaiting(app: INestApplicationContext): Promise<void> {
  const locks = app.get(LockService);
  const held = await locks.lock('job');
  const waiter = locks.lock('job');
  await turn();
  const closing = app.close();
  await expect(waiter).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
  await expect(locks.tryLock('another')).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
  await held.unlock();
  await closing;
}
