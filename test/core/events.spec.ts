import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockLostError, LockUnavailableError, type LockEvent } from 'nest-redis-lock';
import { config, retry, Subscriber, tap } from 'rxjs';
import { deferred, turn, until } from '../support/deferred.js';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';
import { Random } from '../support/model/random.js';
import { ScriptedStore } from '../support/stores/scripted-store.js';

describe('The events of a service', () => {
  let store: ScriptedStore;
  let here: ClosableLockService;
  let there: ClosableLockService;
  let events: LockEvent[];

  beforeEach(() => {
    store = new ScriptedStore();
    here = lockService(store, { lease: '10s', wait: '5s', shutdownGrace: 0 });
    there = lockService(store, { lease: '10s', wait: '5s', shutdownGrace: 0 });
    events = [];
    here.events.subscribe((event) => events.push(event));
  });

  afterEach(async () => {
    await here.close();
    await there.close();
  });

  const types = () => events.map(({ type }) => type);

  it('the events say when a lock was acquired, and when it was released', async () => {
    await here.withLock(
      ['b', 'a'],
      (lock) =>
        expect(events).toEqual([
          {
            type: 'acquired',
            keys: ['a', 'b'],
            label: 'report',
            fence: lock.fence,
            nested: false,
            waitedMs: expect.any(Number),
          },
        ]),
      { label: 'report' },
    );
    expect(events[1]).toEqual({
      type: 'released',
      keys: ['a', 'b'],
      label: 'report',
      fence: expect.any(Number),
      nested: false,
      heldMs: expect.any(Number),
    });
    expect(events).toHaveLength(2);
  });

  it.each([
    ['in the process', () => here, {}],
    ['in the store', () => there, { fair: true }],
  ])('the events say that a caller had to queue %s, when its wait is over', async (_where, from, options) => {
    const first = await from().lock('a');
    events.length = 0;
    const second = here.lock('a', options);
    await turn();
    expect(events).toEqual([]);
    await first.unlock();
    await (await second).unlock();
    const released = from() === here ? ['released'] : [];
    expect(types().sort()).toEqual(['acquired', ...released, 'released', 'waited'].sort());
    expect(types().indexOf('waited')).toBe(types().indexOf('acquired') - 1);
  });

  it('the events report a time-out, after the wait for it unless the caller only tried', async () => {
    await there.lock('a');
    await here.lock('a', { wait: 20 }).catch(() => undefined);
    expect(await here.tryLock('a')).toBeNull();
    const holder = expect.stringMatching(/:\d+$/);
    expect(events).toEqual([
      { type: 'waited', keys: ['a'], label: undefined, waitedMs: expect.any(Number) },
      {
        type: 'timeout',
        keys: ['a'],
        label: undefined,
        waitedMs: expect.any(Number),
        reason: 'held',
        waitMs: 20,
        holder,
        ahead: 0,
      },
      {
        type: 'timeout',
        keys: ['a'],
        label: undefined,
        waitedMs: expect.any(Number),
        reason: 'held',
        waitMs: 0,
        holder,
        ahead: 0,
      },
    ]);
    expect((events[0] as { waitedMs: number }).waitedMs).toBeGreaterThanOrEqual(19);
  });

  it.each([
    ['of its own', new Error('enough')],
    ['of ours', new LockUnavailableError('said by another service')],
  ])('the events say that a caller aborted, with a reason %s', async (_whose, reason) => {
    await there.lock('a');
    const abort = new AbortController();
    const call = here.lock('a', { signal: abort.signal });
    await turn();
    abort.abort(reason);
    await expect(call).rejects.toBe(reason);
    expect(types()).toEqual(['waited', 'aborted']);
    expect(events[1]).toMatchObject({ reason });
  });

  it('the events report an outage', async () => {
    const error = new LockUnavailableError('no Redis');
    store.afterAcquire = () => Promise.reject(error);
    await expect(here.withLock('a', () => undefined)).rejects.toBe(error);
    expect(events).toEqual([
      { type: 'unavailable', keys: ['a'], label: undefined, waitedMs: expect.any(Number), error },
    ]);
  });

  it('the events say nothing of a call with a mistake', async () => {
    await here.withLock('a', () => here.lock('a', { reentrant: false })).catch(() => undefined);
    expect(types()).toEqual(['acquired', 'released']);
  });

  it('the events report renewals', async () => {
    const lock = await here.lock('a', { lease: '1s' });
    await until(() => events.length > 1);
    await lock.extend('1m');
    expect(new Set(types())).toEqual(new Set(['acquired', 'renewed']));
    const last = events.at(-1) as { fence: number; remainingMs: number };
    expect(last.fence).toBe(lock.fence);
    expect(last.remainingMs).toBeGreaterThan(50_000);
  });

  it('the events report a loss once, and then of no release', async () => {
    await expect(
      here.withLock('a', async (lock) => {
        await there.forceUnlock('a');
        await until(() => !lock.isHeld);
      }),
    ).rejects.toBeInstanceOf(LockLostError);
    expect(types()).toEqual(['acquired', 'lost']);
    expect(events[1]).toMatchObject({ reason: 'taken', nested: false });
  });

  it('the events report nested locks, also of one that outlives its call', async () => {
    const [inside, end] = [deferred(), deferred()];
    let left: Promise<unknown> | undefined;
    await here.withLock('a', async () => {
      left = here.withLock('a', () => (inside.resolve(), end.promise));
      await inside.promise;
      await here.withLock('a', () => undefined, { wait: 0 }).catch(() => undefined);
    });
    end.resolve();
    await expect(left).rejects.toMatchObject({ reason: 'unlocked' });
    expect(events.map(({ type, ...event }) => ('nested' in event && event.nested ? `nested ${type}` : type))).toEqual([
      'acquired',
      'nested acquired',
      'timeout',
      'nested lost',
      'released',
    ]);
  });

  it('the events report a lock that was lost before its caller had it', async () => {
    const first = await here.lock('a');
    const second = here.lock('a');
    await turn();
    void first.unlock();
    void store.memory.forceRelease('a');
    await (await second).unlock();
    expect(types()).toEqual(['acquired', 'released', 'waited', 'acquired', 'lost']);
  });

  it('each subscriber gets the events of locks that were acquired after it subscribed, and no others', async () => {
    const earlier = await here.lock('a');
    const heard: LockEvent[] = [];
    here.events.subscribe((event) => heard.push(event));
    await earlier.unlock();
    await here.withLock('a', () => undefined);
    expect(heard.map(({ type }) => type)).toEqual(['acquired', 'released']);
    expect(types()).toEqual(['acquired', 'released', 'acquired', 'released']);
  });

  it('the events come once, also to a subscriber that subscribes again when it hears of them', async () => {
    let failures = 0;
    here.events
      .pipe(
        tap(() => {
          if (failures++ === 0) throw new Error('no such metric');
        }),
        retry(3),
      )
      .subscribe();
    await here.withLock('a', () => undefined);
    expect(failures).toBe(1);
    await here.withLock('a', () => undefined);
    expect(failures).toBe(3);
  });

  it('the events say nothing of a lock that is over, though a reply of the store comes late', async () => {
    const answer = deferred();
    store.afterRenew = () => answer.promise;
    const lock = await here.lock('a');
    const extending = lock.extend();
    await lock.unlock();
    answer.resolve();
    await extending.catch(() => undefined);
    expect(types()).toEqual(['acquired', 'released']);
  });

  it('a subscriber that throws, where RxJS does not catch it, keeps nobody from a lock or its release', async () => {
    class Broken extends Subscriber<LockEvent> {
      override next(): void {
        throw new Error('next');
      }
      override complete(): void {
        super.complete();
        throw new Error('complete');
      }
    }
    here.events.subscribe(new Broken());
    const thrown: string[] = [];
    config.onUnhandledError = ({ message }: Error) => thrown.push(message);
    try {
      expect(await here.withLock('a', async () => 'done')).toBe('done');
      const lock = await here.lock('a');
      expect(await here.tryLock('a')).toBeNull();
      expect(await lock.unlock()).toBe(true);
      expect(await store.isLocked('a')).toBe(false);
      await here.close();
      await until(() => thrown.includes('complete'));
    } finally {
      config.onUnhandledError = null;
    }
    expect(types()).toEqual(['acquired', 'released', 'acquired', 'timeout', 'released']);
    expect(new Set(thrown)).toEqual(new Set(['next', 'complete']));
  });

  it('the events end with the app', async () => {
    let ended = 0;
    const complete = () => void ended++;
    here.events.subscribe({ complete });
    await here.lock('a');
    await here.close();
    expect(types()).toEqual(['acquired', 'lost']);
    here.events.subscribe({ complete });
    expect(ended).toBe(2);
  });

  it('the events of each lock come in pairs, whatever happens', async () => {
    const random = new Random(1);
    let asked = 0;
    const withLock = (service: ClosableLockService, key: string, work: () => unknown, options = {}) => {
      if (service === here) asked++;
      return service.withLock(key, work, options).catch(() => undefined);
    };
    const call = async () => {
      // Calls begin at any moment.
      await sleep(random.below(50));
      const [service, key] = [random.pick([here, here, there]), random.pick(['a', 'b', 'c'])];
      const signal = random.chance(1 / 4) ? { signal: AbortSignal.timeout(random.below(40)) } : {};
      const work = async () => {
        if (random.chance(1 / 20)) await there.forceUnlock(key);
        await turn();
        if (random.chance(1 / 3)) await withLock(service, key, () => undefined);
      };
      await withLock(service, key, work, { wait: random.below(60), fair: random.chance(1 / 2), ...signal });
    };
    await Promise.all(Array.from({ length: 200 }, call));

    const acquired = events.filter((event) => event.type === 'acquired');
    const over = events.filter((event) => event.type === 'released' || event.type === 'lost');
    const facts = (some: typeof acquired | typeof over) =>
      some
        .map(({ keys, fence, nested }) => ({ keys, fence, nested }))
        .sort((one, other) => one.fence - other.fence || Number(one.nested) - Number(other.nested));
    expect(facts(over)).toEqual(facts(acquired));
    expect(
      acquired.length + types().filter((type) => ['timeout', 'aborted', 'unavailable'].includes(type)).length,
    ).toBe(asked);
  });
});
