import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { LockEvent } from 'nest-redis-lock';
import { MemoryLockStore } from 'nest-redis-lock/testing';
import { deferred, standStill, turn, until } from '../support/deferred.js';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';

describe('A lock with warnAfter', () => {
  let locks: ClosableLockService;
  let events: LockEvent[];

  beforeEach(() => {
    locks = lockService(new MemoryLockStore(), { warnAfter: 40 });
    events = [];
    locks.events.subscribe((event) => events.push(event));
  });

  afterEach(() => locks.close());

  const overdue = () => events.filter((event) => event.type === 'overdue');
  const reported = () => overdue().map(({ label }) => label);

  /** Resolves when a lock that is acquired only now has been reported. */
  async function whileAnotherIsReported(warnAfter?: number): Promise<void> {
    const other = await locks.lock('other', { label: 'other', warnAfter });
    await until(() => reported().includes('other'));
    await other.unlock();
  }

  it('is reported once, while it is held, with its token', async () => {
    const lock = await locks.lock('a', { label: 'report' });
    await whileAnotherIsReported();
    expect(overdue()[0]).toEqual({
      type: 'overdue',
      id: 1,
      keys: ['a'],
      label: 'report',
      mode: 'exclusive',
      fence: lock.fence,
      nested: false,
      heldMs: expect.any(Number),
      warnAfterMs: 40,
      token: lock.token,
    });
    expect(overdue()[0]!.heldMs).toBeGreaterThanOrEqual(39);
    expect(reported()).toEqual(['report', 'other']);
    expect(await locks.forceUnlock('a', { token: overdue()[0]!.token })).toBe(true);
    await until(() => !lock.isHeld);
    expect(reported()).toEqual(['report', 'other']);
  });

  it('has been held for as long as it was, also when somebody has set the time meanwhile', async () => {
    const lock = await locks.lock('a');
    const setBack = Date.now() - 3_600_000;
    const time = jest.spyOn(Date, 'now').mockImplementation(() => setBack);
    await lock.unlock();
    time.mockRestore();
    const released = events.find((event) => event.type === 'released');
    expect(released!.heldMs).toBeGreaterThanOrEqual(0);
    expect(released!.heldMs).toBeLessThan(60_000);
  });

  it('is not reported when it is released in time', async () => {
    await locks.withLock('a', () => turn(), { warnAfter: 600 });
    const lost = await locks.lock('b', { warnAfter: 600 });
    await locks.forceUnlock('b');
    await until(() => !lost.isHeld);
    await whileAnotherIsReported(650);
    expect(reported()).toEqual(['other']);
  });

  it('is reported before its release when the work blocks the process, so that no timer fires', async () => {
    await locks.withLock('a', () => standStill(60));
    expect(events.map(({ type }) => type)).toEqual(['acquired', 'overdue', 'released']);
    await whileAnotherIsReported();
    expect(overdue()).toHaveLength(2);
  });

  it('has the warnAfter of its call, or else of the module; Infinity is never', async () => {
    const late = await locks.lock('a', { warnAfter: '5m' });
    const never = await locks.lock('b', { warnAfter: Infinity });
    const soon = await locks.lock('c', { warnAfter: 1, label: 'soon' });
    await whileAnotherIsReported();
    expect(overdue().map(({ label, warnAfterMs }) => ({ label, warnAfterMs }))).toEqual([
      { label: 'soon', warnAfterMs: 1 },
      { label: 'other', warnAfterMs: 40 },
    ]);
    await Promise.all([late, never, soon].map((lock) => lock.unlock()));
  });

  it('is not reported once more for a nested call, unless the time of that is over first', async () => {
    const work = async () => {
      await until(() => reported().includes('outer'));
      await whileAnotherIsReported();
    };
    const innermost = () => locks.withLock('a', work, { label: 'innermost', warnAfter: 10 });
    const inner = () => locks.withLock('a', innermost, { label: 'inner', warnAfter: 400 });
    await locks.withLock('a', inner, { label: 'outer', warnAfter: 400 });
    expect(reported()).toEqual(['innermost', 'outer', 'other']);
    expect(overdue()[0]!.nested).toBe(true);
  });

  it('is measured from its own grant, when it was handed off inside the process', async () => {
    const [inside, goOn] = [deferred(), deferred()];
    const first = locks.withLock('a', () => (inside.resolve(), goOn.promise), {
      label: 'first',
      warnAfter: 200,
    });
    await inside.promise;
    const second = locks.withLock('a', () => undefined, { label: 'second', warnAfter: 200 });
    await until(() => reported().length === 1);
    goOn.resolve();
    await Promise.all([first, second]);
    expect(reported()).toEqual(['first']);
  });
});
