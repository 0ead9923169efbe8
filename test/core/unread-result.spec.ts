import { EventEmitter, once } from 'node:events';
import { Duplex, PassThrough, Readable, Stream, Writable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { turn } from '../support/deferred.js';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';
import { ScriptedStore } from '../support/stores/scripted-store.js';

describe('What work has returned, and its caller has not got yet:', () => {
  let store: ScriptedStore;
  let locks: ClosableLockService;

  beforeEach(() => {
    store = new ScriptedStore();
    locks = lockService(store, { lease: '10s', wait: '5s', shutdownGrace: 0 });
  });

  afterEach(() => locks.close());

  describe.each([
    ['a readable stream', () => new Readable()],
    ['a writable stream', () => new Writable()],
    ['another emitter, such as a child process', () => new EventEmitter()],
  ])('%s', (_what, made) => {
    const forms: [string, (emitter: EventEmitter) => unknown][] = [
      ['alone', (emitter) => emitter],
      ['in an object', (stream) => ({ stream, size: 1 })],
      ['in an array', (stream) => ['name', stream]],
    ];

    it.each(forms)('that fails while its lock is released does not end the process (%s)', async (_form, inForm) => {
      const emitter = made();
      store.afterRelease = async () => void emitter.emit('error', new Error('no such file'));
      const call = locks.withLock('a', () => inForm(emitter));
      if (emitter instanceof Stream) return expect(call).rejects.toThrow('no such file');
      // It may go on, as a client does that connects again.
      await call;
      expect(await once(emitter, 'error')).toEqual([new Error('no such file')]);
    });

    it.each(forms)('is passed on without a listener of the library (%s)', async (_form, inForm) => {
      const emitter = made();
      const result = inForm(emitter);
      expect(await locks.withLock('a', () => result)).toBe(result);
      expect(emitter.listenerCount('error')).toBe(0);
    });

    it('that somebody listens to is left alone', async () => {
      const emitter = made();
      const heard: unknown[] = [];
      emitter.on('error', (error) => heard.push(error));
      store.afterRelease = async () => void emitter.emit('error', 'a failure');
      expect(await locks.withLock('a', () => emitter)).toBe(emitter);
      expect(heard).toEqual(['a failure']);
    });
  });

  it('an emitter that is no stream may fail while its lock is released, and nobody needs to listen', async () => {
    const emitter = new EventEmitter();
    store.afterRelease = async () => void emitter.emit('error', new Error('no connection'));
    expect(await locks.withLock('a', () => emitter)).toBe(emitter);
    await turn();
    expect(emitter.listenerCount('error')).toBe(0);
  });

  it('the names of a large object are not listed, which takes long', async () => {
    const listed = jest.fn();
    const large = new Proxy<Record<string, number>>({ one: 1 }, { ownKeys: (all) => (listed(), Reflect.ownKeys(all)) });
    expect(await locks.withLock('a', () => large)).toBe(large);
    expect(listed).not.toHaveBeenCalled();
  });

  const boom = (): never => {
    throw new Error('boom');
  };
  it.each<[string, unknown[]]>([
    ['a getter that throws', Object.defineProperty([1, 2], 0, { get: boom })],
    ['an iterator that throws', Object.assign([1], { [Symbol.iterator]: boom })],
    ['a handler that throws', new Proxy([1], { get: (all, name) => (name === '0' ? boom() : Reflect.get(all, name)) })],
  ])('an array with %s does not keep its lock', async (_what, array) => {
    expect(await locks.withLock('a', () => array)).toBe(array);
    expect(await locks.isLocked('a')).toBe(false);
  });

  /** What becomes of a result that nobody gets. */
  const lost = (result: unknown): Promise<void> => {
    const call = locks.withLock('a', async () => {
      await locks.forceUnlock('a');
      return result;
    });
    return expect(call).rejects.toHaveProperty('code', 'LOCK_LOST');
  };

  it.each([
    ['a stream', new Readable()],
    ['a connection', new Duplex({ read: () => undefined })],
    ['a stream that somebody reads', new PassThrough().on('data', () => undefined)],
    ['a writable stream', new Writable()],
  ])('%s goes on when a call that returns it has lost its lock: the app may keep it', async (_what, stream) => {
    await lost(stream);
    expect(stream.destroyed).toBe(false);
  });
});
