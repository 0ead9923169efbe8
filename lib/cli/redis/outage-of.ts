import type { LockList } from '../../core/lock-list.js';
import { detailOf } from '../../errors/lock.error.js';
import type { LockService } from '../../service/lock.service.js';
import { EXIT, exitCodeFor } from '../exit-codes.js';

/**
 * Says why the servers that keep the locks do not answer, or too few of them, when a list has not reached some.
 * Undefined if they do.
 */
export async function outageOf(locks: LockService, { unreached }: LockList): Promise<string | undefined> {
  if (!unreached.some(({ what }) => what === 'server')) return undefined;
  try {
    await locks.isLocked('nest-redis-lock:ls');
    return undefined;
  } catch (error) {
    if (exitCodeFor(error) !== EXIT.unavailable) throw error;
    return detailOf(error as Error);
  }
}
