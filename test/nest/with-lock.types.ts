/**
 * What the compiler must accept and refuse; `tsc` checks it, nobody runs it.
 * A line under `@ts-expect-error` that compiles is an error itself.
 */
import { Readable } from 'node:stream';
import { Redis } from 'ioredis';
import { type Observable, of } from 'rxjs';
import {
  CurrentLock,
  type Lock,
  type LockKey,
  lockKey,
  type Duration,
  LockService,
  type LockTimeoutContext,
  RedisLockModule,
  WithLock,
  type WithLockDecoratorOptions,
} from 'nest-redis-lock';
import { LockTestingModule, MemoryLockStore } from 'nest-redis-lock/testing';

interface CreateDto {
  readonly id: string;
  readonly items: { readonly sku: string }[];
}

const byIds = (from: string, to: string): LockKey => [`account:${from}`, `account:${to}`];
const byDto = ({ id }: { readonly id: string }) => `order:${id}`;

const slow: WithLockDecoratorOptions = { wait: '1m' };

export class Accepted {
  @WithLock('report', slow)
  async withOptionsFromElsewhere() {}

  @WithLock('account:<id>')
  async byTemplate(id: string): Promise<string> {
    return id;
  }

  @WithLock(['account:<from>', 'account:<to>'] as const, {
    wait: '1s',
    lease: 5000,
    onTimeout: 'throw',
    onLost: 'ignore',
    module: 'billing',
  })
  async bySeveral(from: string, to: string, amount: number) {
    return [from, to, amount];
  }

  @WithLock(byIds)
  async byFunction(from: string, to: string) {
    return [from, to];
  }

  @WithLock(byIds)
  async byFunctionOfTheFirstArguments(from: string, to: string, amount: number, note?: string) {
    return [from, to, amount, note];
  }

  @WithLock(() => 'nightly')
  async byFunctionOfNothing(force: boolean) {
    return force;
  }

  @WithLock(byDto)
  async byWiderParameter(dto: CreateDto) {
    return dto;
  }

  @WithLock((id: string, part?: number) => `file:${id}:${part ?? 0}`)
  async byOptionalParameter(id: string, part?: number) {
    return [id, part];
  }

  @WithLock((...ids: string[]) => ids)
  async byRest(...ids: string[]) {
    return ids;
  }

  @WithLock('all')
  async generic<T>(value: T): Promise<T> {
    return value;
  }

  @WithLock('order:<dto.id>', { onTimeout: ({ error, args }) => error.waitedMs + args.length })
  async withTheLock(dto: CreateDto, @CurrentLock() lock?: Lock): Promise<number | undefined> {
    return dto.id === '' ? undefined : lock?.fence;
  }

  @WithLock('order:<0.id>:<0.items.0.sku>:<1>:<2.kind>')
  async byPosition(dto: CreateDto, part: number, of?: { readonly kind?: 'a' | 'b' }) {
    return [dto, part, of];
  }

  @WithLock(['account:<0>', 'account:<1>'])
  async bySeveralPositions(from: string, to: bigint) {
    return [from, to];
  }

  @WithLock('<0>:<1.anything>:<2.some.where>')
  async byPositionOfWhatIsNotKnown<T>(value: T, json: Record<string, string>, other: unknown) {
    return [value, json, other];
  }

  @WithLock('file:<0>:<3>')
  async byPositionOfTheRest(...ids: string[]) {
    return ids;
  }

  @WithLock('card:<0.1>:<1.id>:<1.isNew>')
  async byPositionOfATupleAndOfEither(
    pair: readonly [Date, string],
    dto: { readonly id: string; readonly isNew: boolean } | { readonly id: number; readonly isNew: false },
  ) {
    return [pair, dto];
  }

  @WithLock(`${'tenant'}:<0>` as string)
  async byTextOfTheRuntime() {}

  @WithLock('all')
  protected async notPublic(): Promise<void> {}

  @WithLock('job', { wait: 0, onTimeout: 'skip', atLeast: '5 minutes' })
  async job() {}

  @WithLock('job', { onTimeout: 'skip' })
  async mayBeSkipped(): Promise<string | undefined> {
    return 'done';
  }

  @WithLock('job', { onTimeout: () => undefined })
  async mayAnswerNothing(): Promise<string | void> {
    return 'done';
  }

  @WithLock('job', { onTimeout: async () => 'busy' })
  async mayBePromised(id: string): Promise<string> {
    return id;
  }

  @WithLock('job', {
    onTimeout: ({ error }) => {
      throw new Error('busy', { cause: error });
    },
  })
  async throwsAnother(id: string): Promise<string> {
    return id;
  }

  @WithLock('job', { onTimeout: ({ args: [id, count] }: LockTimeoutContext<[string, number]>) => id.repeat(count) })
  async isToldItsArguments(id: string, count: number): Promise<string> {
    return id + count;
  }

  @WithLock('all', { onTimeout: 'skip' })
  async skippedGeneric<T>(value: T): Promise<T | undefined> {
    return value;
  }

  @WithLock('all', { onTimeout: 'skip' })
  observable(): Observable<number> {
    return of(1);
  }

  @WithLock('all')
  async *iterator() {
    yield 1;
  }

  @WithLock('order:<params.id>', { scope: 'request' })
  handler(id: string): string {
    return id;
  }

  @WithLock((context) => context.switchToHttp().getRequest<{ url: string }>().url, { scope: 'request' })
  handlerToo(id: string): string {
    return id;
  }

  @WithLock('all')
  returnsAPromise(value: string): Promise<string> {
    return Promise.resolve(value);
  }
}

export class Refused {
  // @ts-expect-error the key function wants a number where the method has a string
  @WithLock((id: number) => `account:${id}`)
  async otherType(id: string) {
    return id;
  }

  // @ts-expect-error the key function wants an argument that the method has not
  @WithLock(byIds)
  async tooFewParameters(from: string) {
    return from;
  }

  // @ts-expect-error the key function wants an argument that may be missing
  @WithLock(byIds)
  async optionalParameter(from: string, to?: string) {
    return [from, to];
  }

  // @ts-expect-error the key function wants a string where the method takes a number too
  @WithLock((id: string) => `account:${id}`)
  async widerType(id: string | number) {
    return id;
  }

  // @ts-expect-error the key function wants a field that the parameter has not
  @WithLock(byDto)
  async otherObject(dto: { readonly name: string }) {
    return dto;
  }

  // @ts-expect-error a key is a string or an array of strings
  @WithLock((id: number) => id)
  async keyIsANumber(id: number) {
    return id;
  }

  // @ts-expect-error a key can't be waited for
  @WithLock(async (id: string) => id)
  async keyIsAPromise(id: string) {
    return id;
  }

  // @ts-expect-error there is no second parameter
  @WithLock('account:<1>')
  async noSuchPosition(id: string) {
    return id;
  }

  // @ts-expect-error there is no second parameter, in one of several keys
  @WithLock(['account:<0>', 'account:<1>'])
  async noSuchPositionInOne(id: string) {
    return id;
  }

  // @ts-expect-error the parameter has no such field
  @WithLock('order:<0.sku>')
  async noSuchField(dto: CreateDto) {
    return dto;
  }

  // @ts-expect-error nor has what is in it
  @WithLock('order:<0.items.0.name>')
  async noSuchFieldDeepIn(dto: CreateDto) {
    return dto;
  }

  // @ts-expect-error an object is no part of a key
  @WithLock('order:<0>')
  async positionOfAnObject(dto: CreateDto) {
    return dto;
  }

  // @ts-expect-error nor is what may be one
  @WithLock('order:<0>')
  async positionOfWhatMayBeAnObject(id: string | CreateDto) {
    return id;
  }

  // @ts-expect-error the tuple ends before
  @WithLock('card:<0.2>')
  async pastTheEndOfATuple(pair: readonly [string, string]) {
    return pair;
  }

  // @ts-expect-error the work of a method that is not async has no end to wait for
  @WithLock('account:<id>')
  sync(id: string): string {
    return id;
  }

  // @ts-expect-error nor has that of a generator
  @WithLock('all')
  *generator() {
    yield 1;
  }

  // @ts-expect-error nor has that of a stream, which the caller may not read
  @WithLock('all')
  stream(): Readable {
    return Readable.from([1]);
  }

  // @ts-expect-error an HTTP handler's key is made from the ExecutionContext
  @WithLock((id: string) => id, { scope: 'request' })
  async requestKey(id: string) {
    return id;
  }

  // @ts-expect-error a property is not a method
  @WithLock('all')
  readonly property: string = '';

  // @ts-expect-error there is no such option
  @WithLock('all', { atMost: '30s' })
  async unknownOption() {}

  // @ts-expect-error who is skipped gets undefined
  @WithLock('all', { onTimeout: 'skip' })
  async skipped(id: string): Promise<string> {
    return id;
  }

  // @ts-expect-error the answer is of another type than the result
  @WithLock('all', { onTimeout: ({ error }) => error.waitedMs })
  async otherAnswer(id: string): Promise<string> {
    return id;
  }

  // @ts-expect-error nor is what it promises
  @WithLock('all', { onTimeout: async () => 42 })
  async otherPromise(id: string): Promise<string> {
    return id;
  }

  // @ts-expect-error nothing is no text
  @WithLock((id: string) => id, { onTimeout: () => {} })
  async noAnswer(id: string): Promise<string> {
    return id;
  }

  // @ts-expect-error the method has no number
  @WithLock('all', { onTimeout: ({ args: [count] }: LockTimeoutContext<[number]>) => `${count.toFixed()}` })
  async otherArguments(id: string): Promise<string> {
    return id;
  }

  // @ts-expect-error there is no such unit
  @WithLock('all', { wait: '2 parsecs' })
  async unknownUnit() {}

  // @ts-expect-error a unit needs a number
  @WithLock('all', { lease: 'minutes' })
  async noNumber() {}

  // @ts-expect-error there is no such answer to a time-out
  @WithLock('all', { onTimeout: 'ignore' })
  async unknownOnTimeout() {}

  // @ts-expect-error not a key
  @WithLock(42)
  async notAKey() {}
}

export const keysByHand = (id: string, dto: CreateDto): string[] => [
  lockKey('nightly'),
  lockKey('pay-out:<id>', { id }),
  lockKey('pay-out:<id>:<part>:<open>', { id, part: 2n, open: true }),
  lockKey('pay-out:<id>', dto),
  lockKey('order:<dto.items.0.sku>', { dto }),
  lockKey('pay-out:<0>', [id]),
  lockKey(`${'tenant'}:<id>` as string, { id }),
  // @ts-expect-error a value is missing
  lockKey('pay-out:<id>'),
  // @ts-expect-error one of two is missing
  lockKey('pay-out:<id>:<part>', { id }),
  // @ts-expect-error it has another name
  lockKey('pay-out:<id>', { payOutId: id }),
  // @ts-expect-error the template has no such name
  lockKey('pay-out:<id>', { id, part: 1 }),
  // @ts-expect-error an object is no part of a key
  lockKey('pay-out:<dto>', { dto }),
  // @ts-expect-error nor is what may be missing
  lockKey('pay-out:<id>', { id: undefined as string | undefined }),
  // @ts-expect-error a path leads into an object
  lockKey('order:<dto.id>', { dto: id }),
];

export async function service(locks: LockService): Promise<number> {
  const value: string = await locks.withLock('a', (lock) => `${lock.fence}`);
  const length: number = await locks.withLock(['a', 'b'], async () => value.length, {
    onLost: 'ignore',
    wait: Infinity,
  });
  const none: Lock | null = await locks.tryLock('a', { signal: AbortSignal.timeout(1) });
  // @ts-expect-error it may be null
  none.assertHeld();
  // @ts-expect-error there is no such option
  await locks.lock('a', { fairness: true });
  // @ts-expect-error one key at a time
  await locks.isLocked(['a']);
  // @ts-expect-error a lock is not to be changed
  (await locks.lock('a')).fence = 1;
  return length;
}

export const modules = [
  RedisLockModule.forRoot(),
  RedisLockModule.forRoot({ connection: { host: '127.0.0.1' }, wait: '2m', isGlobal: false, name: 'billing' }),
  RedisLockModule.forRootAsync({ useFactory: () => ({ store: new MemoryLockStore() }), name: 'billing' }),
  LockTestingModule.forRoot({ lease: '1s' }),
  // @ts-expect-error the testing module has no Redis
  LockTestingModule.forRoot({ connection: 'redis://127.0.0.1' }),
  RedisLockModule.forRoot({ connection: ['redis://a', { host: 'b' }, new Redis({ host: 'c', lazyConnect: true })] }),
  // @ts-expect-error a node of a quorum is no quorum
  RedisLockModule.forRoot({ connection: [['redis://a', 'redis://b', 'redis://c'], 'redis://d', 'redis://e'] }),
  RedisLockModule.forRoot({ durability: { replicas: 1, timeout: '300ms' } }),
  // @ts-expect-error there is no such durability
  RedisLockModule.forRoot({ durability: 'majority' }),
  // @ts-expect-error the name stands beside the factory
  RedisLockModule.forRootAsync({ useFactory: () => ({ name: 'billing' }) }),
];

/** What `ms` reads. A setting is a text of which only the boot can say that it is one. */
export const durations = (setting: string): Duration[] => [
  250, '250', '250ms', '30s', '30 s', '2m', '5 minutes', '1 Hour', '1.5h', '.5 hrs', '1 DAY', '1w', '1y', '100 msecs', Infinity, setting as Duration,
  // @ts-expect-error it could say anything
  setting,
  // @ts-expect-error this is no number
  'a few minutes',
  // @ts-expect-error this is no text
  30n,
]; // prettier-ignore
