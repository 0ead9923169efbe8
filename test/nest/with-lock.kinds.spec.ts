import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { CurrentLock, type Lock, LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';

type Body = (lock: Lock) => unknown;

@Injectable()
class Catalogue {
  @WithLock('catalogue:<0>', { mode: 'read', wait: 0, label: 'search' })
  async read(_tenant: string, body: Body, @CurrentLock() lock?: Lock) {
    return body(lock!);
  }

  @WithLock('catalogue:<0>', { mode: 'write', wait: 0 })
  async write(_tenant: string, body: Body, @CurrentLock() lock?: Lock) {
    return body(lock!);
  }

  @WithLock('printer', { permits: 2, wait: 0 })
  async print(body: Body, @CurrentLock() lock?: Lock) {
    return body(lock!);
  }

  @WithLock('nightly', { wait: 0, onTimeout: 'skip', atLeast: '1m' })
  async nightly(): Promise<string | undefined> {
    return 'done';
  }

  @WithLock('hourly', { wait: 0, onTimeout: 'skip', atLeast: '1m' })
  async hourly(): Promise<void> {
    throw new Error('the job failed');
  }
}

describe('@WithLock', () => {
  let app: TestingModule;
  let catalogue: Catalogue;
  let locks: LockService;

  beforeAll(async () => {
    app = await Test.createTestingModule({ imports: [LockTestingModule.forRoot()], providers: [Catalogue] }).compile();
    catalogue = app.get(Catalogue);
    locks = app.get(LockService);
  });

  afterAll(() => app.close());

  const fromOutside = async <T>(call: () => Promise<T>): Promise<T | string> =>
    call().catch((error: { code: string }) => error.code);

  it('@WithLock lets readers in together, and a writer alone', async () => {
    const reader = await locks.lock('catalogue:a', { mode: 'read' });
    expect(await catalogue.read('a', ({ mode }) => mode)).toBe('read');
    expect(await fromOutside(() => catalogue.write('a', () => 'written'))).toBe('LOCK_TIMEOUT');
    await reader.unlock();
    expect(await catalogue.write('a', ({ mode }) => mode)).toBe('write');
    expect(await catalogue.read('a', async () => (await locks.inspect('catalogue:a'))?.holder.label)).toBe('search');
  });

  it('@WithLock nests: a method that reads may be called by one that writes', async () => {
    expect(await catalogue.write('a', () => catalogue.read('a', () => 'both'))).toBe('both');
  });

  it('@WithLock lets in as many as there are permits', async () => {
    const permits = [await locks.lock('printer', { permits: 2 }), await locks.lock('printer', { permits: 2 })];
    expect(await fromOutside(() => catalogue.print(() => 'printed'))).toBe('LOCK_TIMEOUT');
    await permits[0]!.unlock();
    expect(await catalogue.print(({ mode }) => mode)).toBe('permit');
    await permits[1]!.unlock();
  });

  it('@WithLock runs a job once in the time of `atLeast`', async () => {
    expect(await catalogue.nightly()).toBe('done');
    expect(await catalogue.nightly()).toBeUndefined();
  });

  it('@WithLock keeps the key for `atLeast` although the job threw, so that no other node runs it again', async () => {
    await expect(catalogue.hourly()).rejects.toThrow('the job failed');
    expect(await catalogue.hourly()).toBeUndefined();
  });
});
