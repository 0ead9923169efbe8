import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, type INestApplication, Injectable } from '@nestjs/common';
import { LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { getEventListeners } from 'node:events';
import { firstValueFrom, Observable, of } from 'rxjs';
import request from 'supertest';
import { until } from '../support/deferred.js';
import { PLATFORMS, startApp } from './http-app.js';

/** Lives longer than the calls. */
let stopping: AbortController;

interface Calls {
  observable(): Observable<string>;
  iterator(): AsyncGenerator<string>;
}

/** Makes classes whose locks have the signal. */
function classes(signal: AbortSignal) {
  @Injectable()
  class Rows implements Calls {
    @WithLock('rows', { signal })
    observable(): Observable<string> {
      return of('row');
    }

    @WithLock('rows', { signal })
    async *iterator() {
      yield 'row';
    }
  }

  @Controller()
  class Reports {
    @Get()
    @WithLock('report', { signal, scope: 'request' })
    report() {
      return 'report';
    }
  }
  return { Rows, Reports };
}

/**
 * How many listeners a signal has, and how many signals follow it: `AbortSignal.any()` keeps these beside the
 * listeners.
 */
function followers(): number {
  const { signal } = stopping;
  const dependants = Object.getOwnPropertySymbols(signal)
    .filter(({ description }) => description?.includes('Dependant'))
    .map((symbol) => (signal as unknown as Record<symbol, Set<unknown> | undefined>)[symbol]?.size ?? 0);
  return [getEventListeners(signal, 'abort').length, ...dependants].reduce((sum, count) => sum + count);
}

describe.each(PLATFORMS)('on %s, a "signal" that outlives its calls', (_platform, adapter) => {
  let app: INestApplication;
  let locks: LockService;
  let rows: Calls;

  beforeEach(async () => {
    stopping = new AbortController();
    const { Rows, Reports } = classes(stopping.signal);
    app = await startApp(adapter, {
      imports: [LockTestingModule.forRoot()],
      controllers: [Reports],
      providers: [Rows],
    });
    locks = app.get(LockService);
    rows = app.get<Calls>(Rows);
  });

  afterEach(() => app.close());

  const read = async (): Promise<unknown> => firstValueFrom(rows.observable());
  const iterate = async (): Promise<unknown> => {
    for await (const row of rows.iterator()) return row;
    return undefined;
  };
  const get = async (): Promise<unknown> => (await request(app.getHttpServer()).get('/')).text;

  it.each<[string, () => Promise<unknown>, string]>([
    ['an Observable', read, 'rows'],
    ['an async iterator', iterate, 'rows'],
    ["a handler with scope: 'request'", get, 'report'],
  ])('a signal that outlives its calls keeps nothing of the calls of %s', async (_what, call, key) => {
    for (let calls = 0; calls < 3; calls++) expect(await call()).toMatch(/^(row|report)$/);
    await until(async () => !(await locks.isLocked(key)));
    await until(() => followers() === 0);
  });

  it('a signal ends the wait of a stream', async () => {
    await using held = await locks.lock('rows');
    const reading = expect(iterate()).rejects.toThrow('stopping');
    await until(() => followers() > 0);
    stopping.abort(new Error('stopping'));
    await reading;
    held.assertHeld();
    expect(followers()).toBe(0);
  });
});
