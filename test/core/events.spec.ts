import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockLostError, LockUnavailableError, type LockCallEvent, type LockEvent } from 'nest-redis-lock';
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
            id: 1,
            keys: ['a', 'b'],
            label: 'report',
            method: undefined,
            template: undefined,
            mode: 'exclusive',
            fence: lock.fence,
            nested: false,
            remainingMs: expect.any(Number),
            waitedMs: expect.any(Number),
          },
        ]),
      { label: 'report' },
    );
    expect(events[1]).toEqual({
      type: 'released',
      id: 1,
      keys: ['a', 'b'],
      label: 'report',
      method: undefined,
      template: undefined,
      mode: 'exclusive',
      fence: expect.any(Number),
      nested: false,
      heldMs: expect.any(Number),
    });
    expect(events).toHaveLength(2);
  });

  it.each([
    ['in the process', () => here, {}],
    ['in the store', () => there, { fair: true }],
  ])('the events say that a caller queues %s, and when its wait is over', async (_where, from, options) => {
    const first = await from().lock('a');
    events.length = 0;
    const second = here.lock('a', { ...options, label: 'report' });
    await turn();
    expect(events).toEqual([
      {
        type: 'queued',
        id: expect.any(Number),
        keys: ['a'],
        label: 'report',
        mode: 'exclusive',
        waitedMs: expect.any(Number),
        waitMs: 5000,
        holder: expect.stringMatching(/:\d+$/),
        ahead: 0,
        holding: [],
      },
    ]);
    const { id } = events[0] as LockCallEvent;
    await first.unlock();
    await (await second).unlock();
    const own = events.filter((event) => 'id' in event && event.id === id);
    expect(own.map(({ type }) => type)).toEqual(['queued', 'waited', 'acquired', 'released']);
  });

  it('the events tell what a caller holds while it waits, and how long the lock that it acquires lasts', async () => {
    const first = await here.lock('b', { lease: '3s' });
    const { remainingMs } = events[0] as Extract<LockEvent, { type: 'acquired' }>;
    expect(remainingMs).toBeGreaterThan(2_000);
    expect(remainingMs).toBeLessThanOrEqual(3_000);
    const inside = here.withLock('a', () => here.withLock(['c', 'd'], () => here.lock('b')));
    await turn();
    expect(events.at(-1)).toMatchObject({ type: 'queued', keys: ['b'], holding: ['c', 'd', 'a'] });
    await first.unlock();
    await (await inside).unlock();
  });

  it('the events say once that a caller queues, though it waits in the process and then in the store', async () => {
    const first = await here.lock('a');
    const second = here.lock('a', { lease: '5s' });
    await turn();
    // Ahead of the second caller in the store, which gives the lock to nobody else in between.
    const third = there.lock('a');
    await turn();
    await first.unlock();
    await (await third).unlock();
    await (await second).unlock();
    expect(types()).toEqual(['acquired', 'queued', 'released', 'waited', 'acquired', 'released']);
  });

  it('the events tell of a release before they tell who got the lock at once', async () => {
    const first = await here.lock('a');
    const second = here.lock('a');
    await turn();
    await first.unlock();
    await (await second).unlock();
    expect(events.map((event) => `${event.type} ${'id' in event && event.id}`)).toEqual([
      'acquired 1',
      'queued 2',
      'released 1',
      'waited 2',
      'acquired 2',
      'released 2',
    ]);
    expect(store.asked).toEqual(['acquire', 'release']);
  });

  it('the events tell apart calls of one label that wait at the same time', async () => {
    const first = await here.lock('a');
    const others = [1, 2, 3].map(() => here.withLock('a', () => undefined, { label: 'report' }));
    await turn();
    const queued = events.filter((event) => event.type === 'queued');
    expect(new Set(queued.map(({ id }) => id)).size).toBe(3);
    expect(queued.map(({ ahead }) => ahead)).toEqual([0, 1, 2]);
    await first.unlock();
    await Promise.all(others);
    const over = events.filter((event) => event.type === 'released' && event.label === 'report');
    expect(over).toMatchObject(queued.map(({ id }) => ({ id })));
  });

  it('the events tell the mode of the call', async () => {
    await here.withLock('a', () => undefined, { mode: 'write' });
    await here.withLock('b', () => undefined, { mode: 'read' });
    await here.withLock('c', () => undefined, { permits: 2 });
    const modes = events.map((event) => 'mode' in event && event.mode);
    expect(modes).toEqual(['exclusive', 'exclusive', 'read', 'read', 'permit', 'permit']);
  });

  it('a subscriber that comes during a wait hears nothing of that wait, only of its outcome', async () => {
    const first = await there.lock('a');
    const second = here.lock('a');
    await turn();
    const heard: string[] = [];
    here.events.subscribe(({ type }) => heard.push(type));
    await first.unlock();
    await (await second).unlock();
    expect(types()).toEqual(['queued', 'waited', 'acquired', 'released']);
    expect(heard).toEqual(['acquired', 'released']);
  });

  it('the events report a time-out, after the wait for it unless the caller only tried', async () => {
    await there.lock('a');
    await here.lock('a', { wait: 20 }).catch(() => undefined);
    expect(await here.tryLock('a')).toBeNull();
    const holder = expect.stringMatching(/:\d+$/);
    const call = { keys: ['a'], mode: 'exclusive', waitedMs: expect.any(Number) };
    expect(events).toEqual([
      { type: 'queued', id: 1, ...call, waitMs: 20, holder, ahead: 0, holding: [] },
      { type: 'waited', id: 1, ...call },
      { type: 'timeout', id: 1, ...call, reason: 'held', waitMs: 20, holder, ahead: 0 },
      { type: 'timeout', id: 2, ...call, reason: 'held', waitMs: 0, holder, ahead: 0 },
    ]);
    expect((events[1] as { waitedMs: number }).waitedMs).toBeGreaterThanOrEqual(19);
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
    expect(types()).toEqual(['queued', 'waited', 'aborted']);
    expect(events[2]).toMatchObject({ reason });
  });

  it('the events report an outage', async () => {
    const error = new LockUnavailableError('no Redis');
    store.afterAcquire = () => Promise.reject(error);
    await expect(here.withLock('a', () => undefined)).rejects.toBe(error);
    expect(events).toEqual([
      { type: 'unavailable', id: 1, keys: ['a'], mode: 'exclusive', waitedMs: expect.any(Number), error },
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

  it('the events tell how much of the lease was left when a renewal was confirmed', async () => {
    const lock = await here.lock('a', { lease: '1m' });
    const answer = deferred();
    store.afterRenew = () => answer.promise;
    const extending = lock.extend('2m');
    const left = lock.remaining();
    answer.resolve();
    await extending;
    const { marginMs, leaseMs, remainingMs } = events.at(-1) as Extract<LockEvent, { readonly type: 'renewed' }>;
    expect(leaseMs).toBe(60_000);
    expect(marginMs).toBeLessThanOrEqual(left);
    expect(marginMs).toBeGreaterThan(left - 10_000);
    expect(remainingMs).toBeGreaterThan(100_000);
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
    expect(types()).toEqual(['acquired', 'queued', 'released', 'waited', 'acquired', 'lost']);
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
      some.map(({ id, keys, fence, nested }) => ({ id, keys, fence, nested })).sort((one, other) => one.id - other.id);
    expect(facts(over)).toEqual(facts(acquired));
    const ids = (wanted: string) => events.flatMap((event) => (event.type === wanted && 'id' in event ? event.id : []));
    expect(ids('queued').length).toBeGreaterThan(0);
    expect(ids('waited').sort()).toEqual(ids('queued').sort());
    expect(new Set(ids('queued')).size).toBe(ids('queued').length);
    expect(
      acquired.length + types().filter((type) => ['timeout', 'aborted', 'unavailable'].includes(type)).length,
    ).toBe(asked);
  });
});
