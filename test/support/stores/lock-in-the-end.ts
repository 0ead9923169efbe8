import { expect } from '@jest/globals';
import { LockUnavailableError, type Lock, type LockService } from 'nest-redis-lock';

/** Asks for as long as there is nobody who can answer. */
export async function lockInTheEnd(who: LockService, key: string, errors: unknown[] = []): Promise<Lock> {
  const giveUpAt = performance.now() + 15_000;
  for (;;) {
    const error: unknown = await who.lock(key).catch((error: unknown) => error);
    if (!(error instanceof Error)) return error as Lock;
    expect(error).toBeInstanceOf(LockUnavailableError);
    if (performance.now() > giveUpAt) throw error;
    errors.push(error);
  }
}
