import { EventEmitter } from 'node:events';
import { Duplex, PassThrough, Readable, Writable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { deferred } from '../support/deferred.js';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';
import { ScriptedStore } from '../support/stores/scripted-store.js';

/** The source of a web stream. */
interface Cancelled {
  readonly cancel: () => void;
}

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

    it.each(forms)(
      'that fails while its lock is released fails the call, and does not end the process (%s)',
      async (_form, inForm) => {
        const emitter = made();
        store.afterRelease = async () => void emitter.emit('error', new Error('no such file'));
        await expect(locks.withLock('a', () => inForm(emitter))).rejects.toThrow('no such file');
      },
    );

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

  it('the names of a large object are not listed, which takes long', async () => {
    const listed = jest.fn();
    const large = new Proxy<Record<string, number>>({ one: 1 }, { ownKeys: (all) => (listed(), Reflect.ownKeys(all)) });
    expect(await locks.withLock('a', () => large)).toBe(large);
    expect(listed).not.toHaveBeenCalled();
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
    ['what transforms a stream', new PassThrough()],
  ])('%s that nobody gets, because its lock is lost, is closed', async (_what, stream) => {
    await lost(stream);
    expect(stream.destroyed).toBe(true);
  });

  it.each([
    ['a web stream', (source: Cancelled) => new ReadableStream(source)],
    ['a response', (source: Cancelled) => new Response(new ReadableStream(source))],
  ])('%s that nobody gets, because its lock is lost, is closed', async (_what, made) => {
    const cancelled = deferred();
    await lost(made({ cancel: () => cancelled.resolve() }));
    await cancelled.promise;
  });

  it.each([
    ['a connection', new Duplex({ read: () => undefined })],
    ['a stream that somebody reads', new PassThrough().on('data', () => undefined)],
    ['a writable stream', new Writable()],
  ])('%s goes on when a call that returns it has lost its lock', async (_what, stream) => {
    await lost(stream);
    expect(stream.destroyed).toBe(false);
  });

  it('the loss is told when what nobody gets can not be closed', async () => {
    const stream = new Readable();
    stream.destroy = () => {
      throw new Error('of the app');
    };
    await lost(stream);
  });
});
