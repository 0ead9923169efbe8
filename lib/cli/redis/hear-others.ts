import { timerAt, now } from '../../clock/deadline.js';
import type { LockService } from '../../service/lock.service.js';

const LOOKS_EVERY_MS = 20;

/**
 * Waits until this process hears what others answer: it has only just connected, and a Redis that is far away takes
 * its time. Waits no longer than a command to Redis may take for that, and not at all for a Redis that is down.
 */
export async function hearOthers(locks: LockService, commandTimeoutMs: number): Promise<void> {
  try {
    await locks.isLocked('nest-redis-lock:ls');
  } catch {
    // The call of the verb itself will say so.
    return;
  }
  const giveUpAt = now() + commandTimeoutMs;
  while (now() < giveUpAt && (await isDeaf(locks)))
    await new Promise<void>((resolve) => timerAt(now() + LOOKS_EVERY_MS, resolve));
}

async function isDeaf(locks: LockService): Promise<boolean> {
  const { unreached } = await locks.processes.find();
  return unreached.some(({ reason }) => reason === 'unsubscribed');
}
