import { afterEach, describe, expect, it } from '@jest/globals';
import type { LockStore } from 'nest-redis-lock';
import { MemoryLockStore, TestLockService } from 'nest-redis-lock/testing';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';
import { ScriptedStore } from '../support/stores/scripted-store.js';

describe('Questions to all processes', () => {
  const services: ClosableLockService[] = [];

  function service(store: LockStore): ClosableLockService {
    const made = lockService(store, { shutdownGrace: 0 });
    services.push(made);
    return made;
  }

  afterEach(() => Promise.all(services.splice(0).map((one) => one.close())));

  it('each service that shares a memory store answers for itself, the one that asks first', async () => {
    const store = new MemoryLockStore();
    const all = [service(store), service(store), service(store)];
    for (const [at, { processes }] of all.entries())
      processes.on('sum', (about) => (about as number[]).reduce((sum, one) => sum + one, at * 100));
    const { bySource, unreached } = await all[1]!.processes.askAll({ kind: 'sum', about: [1, 2] });
    expect([...bySource.values()]).toEqual([103, 3, 203]);
    expect(unreached).toEqual([]);
  });

  it('a process that does not know the question, or fails at it, is named', async () => {
    const store = new MemoryLockStore();
    const [asker, other, broken] = [service(store), service(store), service(store)] as const;
    asker.processes.on('state', () => 'fine');
    broken.processes.on('state', () => {
      throw new Error('This is no state.');
    });
    const { bySource, unreached } = await asker.processes.askAll({ kind: 'state', about: null });
    expect([...bySource.values()]).toEqual(['fine']);
    const sources = await Promise.all(
      [other, broken].map(async ({ processes }) => (await processes.find()).sources[0]),
    );
    expect(unreached).toEqual(
      sources.map((source) => ({
        what: 'process',
        name: source!.slice(0, source!.lastIndexOf(':')),
        host: expect.any(String),
        pid: process.pid,
        instance: source!.slice(source!.lastIndexOf(':') + 1),
        reason: 'unsupported',
        message: expect.stringMatching(/did not understand the question: it runs another version/),
      })),
    );
  });

  it('with a store of the app that knows no processes, this one answers, and the result says what is missing', async () => {
    const locks = service(new ScriptedStore());
    locks.processes.on('state', () => 'fine');
    const { bySource, unreached } = await locks.processes.askAll({ kind: 'state', about: null });
    expect([...bySource.values()]).toEqual(['fine']);
    expect(unreached).toMatchObject([{ what: 'server', reason: 'unsupported' }]);
    expect(unreached[0]!.message).toMatch(/"findProcesses".*only this process was asked/);
  });

  it('the service of a test can be asked, and reports a store that it simulates to be down', async () => {
    const store = new MemoryLockStore();
    const [locks, other] = [new TestLockService({ store }), new TestLockService({ store })];
    for (const { processes } of [locks, other]) processes.on('state', () => 'fine');
    expect((await locks.processes.askAll({ kind: 'state', about: null })).bySource.size).toBe(2);
    locks.simulate({ down: true });
    const { bySource, unreached } = await locks.processes.askAll({ kind: 'state', about: null });
    expect(bySource.size).toBe(1);
    expect(unreached).toMatchObject([{ what: 'server', reason: 'unavailable' }]);
    const [source] = (await other.processes.find()).sources;
    expect(await locks.processes.ask(source!, { kind: 'state', about: null })).toBe('unavailable');
  });
});
