import { describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { LockKeyError, LockOptionsError, WithLock } from 'nest-redis-lock';
import { LockTestingModule, MemoryLockStore } from 'nest-redis-lock/testing';
import { defer, lastValueFrom, Observable, of, retry, timeout, TimeoutError } from 'rxjs';
import { boot } from './boot.js';

/** What the compiler refuses, and JavaScript lets through. */
const anyLock = (key: unknown, options?: unknown) => WithLock(key as string, options as object) as MethodDecorator;

const ran: string[] = [];

/** Of which no method can take its lock. */
class Orders {
  @WithLock('order:<orderId>')
  async name(id: string) {
    ran.push(id);
  }

  @WithLock('order:<id')
  async syntax(id: string) {
    ran.push(id);
  }

  @anyLock(undefined)
  async nothing(id: string) {
    ran.push(id);
  }

  @anyLock('order', { retries: 3 })
  async option(id: string) {
    ran.push(id);
  }

  @anyLock('order', { wait: 'soon', module: 'billing' })
  async value(id: string) {
    ran.push(id);
  }

  @anyLock('order', null)
  async noOptions(id: string) {
    ran.push(id);
  }

  @WithLock('order:<id>', { scope: 'request' })
  async request(id: string) {
    ran.push(id);
  }

  @anyLock('order')
  sync(id: string) {
    ran.push(id);
  }

  @WithLock('order:<orderId>')
  observable(id: string): Observable<unknown> {
    return defer(() => of(ran.push(id)));
  }

  @WithLock('order:<orderId>')
  async *iterator(id: string) {
    yield ran.push(id);
  }
}

type Call = (orders: Orders) => Promise<unknown>;
const CALLS: [method: string, call: Call, message: RegExp][] = [
  [
    'whose key names what is no parameter',
    (orders) => orders.name('7'),
    /order:<orderId>" of Orders\.name\(\) names <orderId>\. Known names: id/,
  ],
  [
    'whose template is not closed',
    (orders) => orders.syntax('7'),
    /Orders\.syntax\(\) has a "<" or ">" without its partner/,
  ],
  ['without a key', (orders) => orders.nothing('7'), /Orders\.nothing\(\) must be a non-empty template/],
  [
    'with an option that there is not',
    (orders) => orders.option('7'),
    /Orders\.option\(\): There is no option "retries"/,
  ],
  ['with an option that is wrong', (orders) => orders.value('7'), /Orders\.value\(\): "wait" is "soon"/],
  [
    'with options that are none',
    (orders) => orders.noOptions('7'),
    /Orders\.noOptions\(\): The options of @WithLock must be an object, not null/,
  ],
  [
    "with a bad template and scope: 'request'",
    (orders) => orders.request('7'),
    /Orders\.request\(\) names <id>\. Known names: params/,
  ],
  ['that is synchronous', async (orders) => orders.sync('7'), /Orders\.sync\(\) does not return a promise/],
  [
    'that returns an Observable',
    (orders) => lastValueFrom(orders.observable('7')),
    /Orders\.observable\(\) names <orderId>/,
  ],
  ['that returns an async iterator', (orders) => orders.iterator('7').next(), /Orders\.iterator\(\) names <orderId>/],
];

describe.each(CALLS)('a method %s', (_what, call, message) => {
  it('a method with a mistake never runs, whether or not Nest built its object', async () => {
    const store = new MemoryLockStore();
    const module = await Test.createTestingModule({
      imports: [LockTestingModule.forRoot({ store })],
      providers: [Orders],
    }).compile();
    for (const orders of [module.get(Orders), new Orders()]) {
      await expect(call(orders)).rejects.toBeInstanceOf(LockOptionsError);
      await expect(call(orders)).rejects.toThrow(message);
    }
    expect(await store.isLocked('order')).toBe(false);
    expect(ran).toEqual([]);
    await module.close();
  });

  it('a method with a mistake that is called again and again, at once, leaves time for others', async () => {
    const insisting = defer(() => call(new Orders())).pipe(retry(), timeout(20));
    await expect(lastValueFrom(insisting)).rejects.toBeInstanceOf(TimeoutError);
  });

  it('a method with a mistake is in the one list that the app does not start with', async () => {
    await expect(boot(Orders)).rejects.toThrow(message);
  });
});

it('a method whose key is refused again and again, at once, leaves time for others', async () => {
  class ByKey {
    @WithLock('order:<id>')
    async get(id?: string) {
      return id;
    }
  }
  const module = await Test.createTestingModule({
    imports: [LockTestingModule.forRoot()],
    providers: [ByKey],
  }).compile();
  const byKey = module.get(ByKey);
  await expect(byKey.get()).rejects.toBeInstanceOf(LockKeyError);
  const insisting = defer(() => byKey.get()).pipe(retry(), timeout(20));
  await expect(lastValueFrom(insisting)).rejects.toBeInstanceOf(TimeoutError);
  await module.close();
});
