import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { type Lock, LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { AsyncLocalStorage } from 'node:async_hooks';
import { getEventListeners } from 'node:events';
import { catchError, concat, concatMap, lastValueFrom, Observable, of, Subject, toArray } from 'rxjs';
import { deferred, until } from '../support/deferred.js';

/** Whose async context runs. */
const contexts = new AsyncLocalStorage<'reader' | 'emitter'>();
let locks: LockService;
let held: Lock | undefined;
/** What the streams emit from elsewhere, after a value of their own. */
let source: Subject<number>;

const where = () => [contexts.getStore(), locks.current()?.key];
const stream = () => concat(of(1), source);

@Injectable()
class Feeds {
  @WithLock('feed')
  declared(): Observable<number> {
    return stream();
  }

  @WithLock('feed')
  async promised() {
    held = locks.current();
    return stream();
  }

  @WithLock('feed', { onLost: 'ignore' })
  async careless() {
    return stream();
  }

  @WithLock('feed', { wait: 0 })
  async save(value: number) {
    return `saved ${value}`;
  }
}

let module: TestingModule;
let feeds: Feeds;

beforeEach(async () => {
  source = new Subject();
  module = await Test.createTestingModule({ imports: [LockTestingModule.forRoot()], providers: [Feeds] }).compile();
  feeds = module.get(Feeds);
  locks = module.get(LockService);
});

afterEach(() => module.close());

/** Reads a stream, and notes in which context it hears what. */
async function read(call: () => Observable<number> | Promise<Observable<number>>) {
  const heard: unknown[] = [];
  const ended = deferred();
  const hear = (what: unknown) => void heard.push([what, ...where()]);
  const subscription = await contexts.run('reader', async () => {
    const observable = await call();
    return observable.subscribe({
      next: hear,
      error: (error: { code?: string; message: string }) => ended.resolve(hear(error.code ?? error.message)),
      complete: () => ended.resolve(hear('complete')),
    });
  });
  return { heard, ended: ended.promise, subscription };
}

const emit = (work: () => void) => contexts.run('emitter', work);
const hasReader = () => until(() => source.observed);

describe.each(['declared', 'promised', 'careless'] as const)('the reader of a locked Observable (%s)', (method) => {
  it('hears everything in its own context, outside the lock', async () => {
    const { heard, ended } = await read(() => feeds[method]());
    await hasReader();
    emit(() => source.next(2));
    emit(() => source.complete());
    await ended;
    expect(heard).toEqual([1, 2, 'complete'].map((what) => [what, 'reader', undefined]));
  });

  it('hears no more when it has unsubscribed, and the key is free', async () => {
    const { heard, subscription } = await read(() => feeds[method]());
    await hasReader();
    subscription.unsubscribe();
    await until(async () => !(await locks.isLocked('feed')));
    expect(heard).toEqual([[1, 'reader', undefined]]);
    expect(source.observed).toBe(false);
  });
});

it('the reader of a locked Observable hears in its own context that the lock is lost', async () => {
  const { heard, ended } = await read(() => feeds.promised());
  await hasReader();
  await locks.forceUnlock('feed');
  await ended;
  expect(heard).toEqual([1, 'LOCK_LOST'].map((what) => [what, 'reader', undefined]));
});

it('many readers of one locked Observable all hear that the lock is lost, and listen to it together', async () => {
  const stream = await feeds.promised();
  const readers = await Promise.all(Array.from({ length: 12 }, () => read(() => stream)));
  // Node warns of a leak from the eleventh on.
  expect(getEventListeners(held!.signal, 'abort').length).toBeLessThan(5);
  await locks.forceUnlock('feed');
  await Promise.all(readers.map(({ ended }) => ended));
  expect(readers.map(({ heard }) => heard.length)).toEqual(readers.map(() => 2));
});

it('the reader of a locked Observable hears in its own context that the stream has failed', async () => {
  const { heard, ended } = await read(() => feeds.promised());
  await hasReader();
  emit(() => source.error(new Error('of the stream')));
  await ended;
  expect(heard).toEqual([1, 'of the stream'].map((what) => [what, 'reader', undefined]));
});

it('a call that the reader of a locked Observable makes on the same key waits for the end of the stream', async () => {
  const saved = feeds.declared().pipe(
    concatMap((value) => feeds.save(value)),
    catchError((error: { code?: string }) => of(error.code)),
    toArray(),
  );
  expect(await lastValueFrom(saved)).toEqual(['LOCK_TIMEOUT']);
});
