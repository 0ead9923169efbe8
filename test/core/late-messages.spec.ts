import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockUnavailableError, type Lock, type StoreListener } from 'nest-redis-lock';
import { MemoryLockStore } from 'nest-redis-lock/testing';
import { aborted, turn, until } from '../support/deferred.js';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';

/**
 * Lets who is given a lock ask for it again, as the stores on a cluster and with `durability` do; a loss is told when
 * the test says so.
 */
class LateNewsStore extends MemoryLockStore {
  readonly news: (() => void)[] = [];

  tell(): void {
    for (const news of this.news.splice(0)) news();
  }

  override listen(listener: StoreListener): void {
    const lost: StoreListener['forceReleased'] = (...loss) =>
      void this.news.push(() => listener.forceReleased(...loss));
    super.listen({ ...listener, granted: (token) => listener.offered(token), forceReleased: lost });
  }
}

describe('Late messages about a lock that was taken by force', () => {
  let store: LateNewsStore;
  let here: ClosableLockService;
  let there: ClosableLockService;

  beforeEach(() => {
    store = new LateNewsStore();
    [here, there] = [lockService(store, { shutdownGrace: 0 }), lockService(store, { shutdownGrace: 0 })];
  });

  afterEach(async () => {
    await here.close();
    await there.close();
  });

  /** A lock that its token had before, and lost before it asked for it again; nobody has been told of that yet. */
  async function regained(): Promise<Lock> {
    const before = await there.lock('a');
    const waiting = here.lock('a');
    await until(() => store.waiters('a') === 1);
    void before.unlock();
    const { token } = (await Promise.all([store.inspect('a'), store.forceRelease('a')]))[0]!.holders[0]!;
    const lock = await waiting;
    expect(lock.token).toBe(token);
    expect(store.news.length).toBeGreaterThan(0);
    return lock;
  }

  it('a late message is no loss of the lock that the same token got meanwhile', async () => {
    const lock = await regained();
    store.tell();
    await turn();
    expect(lock.isHeld).toBe(true);
    expect(await lock.unlock()).toBe(true);
  });

  it('a late message is a loss when the new lock was taken too', async () => {
    const lock = await regained();
    await store.forceRelease('a');
    const lost = aborted(lock.signal);
    store.tell();
    expect(await lost).toMatchObject({ code: 'LOCK_LOST', reason: 'taken' });
  });

  it('a late message counts as a loss when the store does not say', async () => {
    const lock = await regained();
    store.renew = () => Promise.reject(new LockUnavailableError('away'));
    const lost = aborted(lock.signal);
    store.tell();
    expect(await lost).toMatchObject({ code: 'LOCK_LOST', reason: 'taken' });
  });
});
