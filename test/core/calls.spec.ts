import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { LockStore } from 'nest-redis-lock';
import { MemoryLockStore } from 'nest-redis-lock/testing';
import { CALLS, MOST_CALLS, type CallsAnswer, type CallsQuestion } from '../../lib/core/list/calls-question.js';
import { First } from '../../lib/core/list/first.js';
import type { CallTrace } from '../../lib/core/lock/lock-tracer.js';
import { LONGEST_ANSWER } from '../../lib/store/process-question.js';
import { until } from '../support/deferred.js';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';

describe('What a process says of its calls', () => {
  const services: ClosableLockService[] = [];
  afterEach(() => Promise.all(services.splice(0).map((one) => one.close())));

  function service(store: LockStore = new MemoryLockStore()): ClosableLockService {
    const made = lockService(store, { shutdownGrace: 0, wait: '20s' });
    services.push(made);
    return made;
  }

  const ask = ({ processes }: ClosableLockService, about: Partial<CallsQuestion>): CallsAnswer =>
    processes.answer({ kind: CALLS, about }) as CallsAnswer;

  let abort: AbortController;
  beforeEach(() => void (abort = new AbortController()));
  afterEach(() => abort.abort());

  it('it names who holds and who waits, the longest first, by any of their texts and by key', async () => {
    const locks = service();
    await locks.lock(['account:42', 'account:43'], { label: 'Transfer', warnAfter: '1ms' });
    await locks.lock('order:7', { label: 'Order' });
    const { signal } = abort;
    void locks.lock('account:42', { label: 'First', signal }).catch(() => undefined);
    void locks.lock('account:42', { label: 'Second', signal }).catch(() => undefined);
    await until(() => Promise.resolve(ask(locks, {}).waiting === 2));
    const { pid } = process;
    const texts = ['', 'COUNT:4'.toLowerCase(), 'second', `:${pid}`, 'nowhere'];
    const { byText, byKey, ...rest } = ask(locks, { texts, keys: ['account:43', 'account:42'] });
    expect(rest).toEqual({ held: 3, waiting: 2, queues: [['account:42', 2]], nested: [] });
    const found = byText.map(({ held, waiting }) =>
      [held, waiting].map(({ items }) => items.map(({ label }) => label)),
    );
    const [all, some] = [
      [
        ['Transfer', 'Order'],
        ['First', 'Second'],
      ],
      [['Transfer'], ['First', 'Second']],
    ];
    expect(found).toEqual([all, some, [[], ['Second']], all, [[], []]]);
    expect(byText[0]!.held).toMatchObject({ total: 3, items: [{ isOverdue: true, mode: 'exclusive' }, {}] });
    expect(byKey).toMatchObject([
      { held: { total: 2, items: [{ label: 'Transfer' }] }, waiting: { total: 0 } },
      { held: { total: 2 }, waiting: { total: 2, items: [{ keys: ['account:42'] }, { label: 'Second' }] } },
    ]);
  });

  it('a call that waits is named with its trace, and with what it holds meanwhile', async () => {
    const locks = service();
    const trace: CallTrace = {
      queued: () => `00-${TRACE}-00f067aa0ba902b7-01`,
      acquired: () => undefined,
      refused: () => undefined,
      failed: () => undefined,
    };
    locks.watchers.traceWith({ startCall: () => trace });
    locks.events.subscribe();
    await locks.lock('b');
    const { signal } = abort;
    const outer = locks.withLock('a', () => locks.lock('b', { signal }));
    await until(() => Promise.resolve(ask(locks, {}).nested.length === 1));
    const { byText, nested } = ask(locks, { texts: ['577b3'] });
    const call = { keys: ['b'], holds: ['a'], traceId: TRACE, id: expect.any(Number) };
    expect(nested).toMatchObject([call]);
    expect(byText[0]).toMatchObject({ held: { total: 0 }, waiting: { total: 1, items: [call] } });
    abort.abort();
    await expect(outer).rejects.toThrow();
  });

  it('the answer fits into one message however much there is, and its totals are right', async () => {
    const locks = service();
    const keys = Array.from({ length: 3_000 }, (_, at) => `account:${'ä'.repeat(100)}:${at}`);
    await Promise.all(keys.map((key) => locks.lock(key, { lease: '1h', label: 'a'.repeat(100) })));
    const answer = ask(locks, { texts: ['', 'account', 'x', 'y'], keys: keys.slice(0, 4) });
    expect(JSON.stringify(answer).length).toBeLessThan(LONGEST_ANSWER);
    expect(answer.held).toBe(3_000);
    expect(answer.byText.map(({ held }) => held.total)).toEqual([3_000, 3_000, 0, 0]);
    expect(answer.byText[0]!.held.items.length).toBeGreaterThan(5);
  });

  it.each([undefined, 1, 'x', { texts: 3, keys: [{}] }])('a question such as %j does no harm', (about) => {
    const locks = service();
    expect(locks.processes.answer({ kind: CALLS, about })).toMatchObject({ held: 0, waiting: 0 });
  });
});

it('the first of many items are found in any order of arrival', () => {
  const numbers = Array.from({ length: 5_000 }, (_, at) => (at * 2_477) % 5_000);
  for (const some of [numbers, [...numbers].sort((a, b) => a - b), [...numbers].sort((a, b) => b - a), [3, 1, 2]]) {
    const first = new First<number>(MOST_CALLS, (a, b) => a - b);
    for (const one of some) first.add(one);
    expect(first.items()).toEqual([...some].sort((a, b) => a - b).slice(0, MOST_CALLS));
  }
});
