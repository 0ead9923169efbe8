import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Client, credentials, type ClientDuplexStream, type ServiceError } from '@grpc/grpc-js';
import {
  type CallHandler,
  type CanActivate,
  Controller,
  type ExecutionContext,
  type INestMicroservice,
  Inject,
  Logger,
  type NestInterceptor,
  type PipeTransform,
  Scope,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import {
  GrpcMethod,
  GrpcStreamCall,
  GrpcStreamMethod,
  type MicroserviceOptions,
  Payload,
  RpcException,
  Transport,
} from '@nestjs/microservices';
import { REQUEST } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { type Lock, LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { once } from 'node:events';
import type { Duplex, Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import {
  catchError,
  concat,
  concatMap,
  defer,
  filter,
  firstValueFrom,
  fromEvent,
  ignoreElements,
  iif,
  isObservable,
  lastValueFrom,
  map,
  merge,
  NEVER,
  type Observable,
  // In the metadata of decorators, where an imported type is not.
  Observable as Declared,
  of,
  startWith,
  Subject,
  take,
  takeUntil,
  tap,
  toArray,
} from 'rxjs';
import { nextTurn } from '../../lib/clock/next-turn.js';
import { collectGarbage } from '../support/collect-garbage.js';
import { deferred, until } from '../support/deferred.js';
import { freePort } from '../support/free-port.mjs';

jest.setTimeout(30_000);

const PROTO = fileURLToPath(new URL('../support/uploads.proto', import.meta.url));
const KEY = 'upload:7';
const OPTIONS = { wait: '1s' } as const;

interface Part {
  readonly number: number;
}

/** Whether the library had stopped the stream of the call when a guard of the app ran. */
let wasPaused: boolean | undefined;

class SlowGuard implements CanActivate {
  async canActivate(context: ExecutionContext): Promise<boolean> {
    wasPaused = context.getArgByIndex<Readable>(2).isPaused();
    await nextTurn();
    return true;
  }
}

/** Reads the stream, too, before the method does. */
class Tap implements NestInterceptor {
  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    context.switchToRpc().getData<Observable<Part>>().subscribe();
    await nextTurn();
    return next.handle();
  }
}

/** Hears of the end of the call. */
class EndLog implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    context.getArgByIndex<Readable>(2).on('end', () => undefined);
    return next.handle();
  }
}

class Slow implements NestInterceptor {
  async intercept(_context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    await someTurns();
    return next.handle();
  }
}

class Mapped implements PipeTransform<Observable<Part>> {
  transform(parts: Observable<Part>): Observable<Part> {
    return isObservable(parts) ? echo(parts) : parts;
  }
}

class Mapping implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const args = context.getArgs<[Observable<Part>]>();
    args[0] = echo(args[0]);
    return next.handle();
  }
}

const bodies: string[] = [];

type ServerCall = Readable & { readonly cancelled: boolean };

@Controller()
@UseGuards(SlowGuard)
class Uploads {
  @GrpcStreamMethod('Uploads')
  @WithLock(KEY, OPTIONS)
  below(parts: Observable<Part>): Observable<Part> {
    return echo(parts);
  }

  @WithLock(KEY, OPTIONS)
  @GrpcStreamMethod('Uploads')
  above(parts: Observable<Part>): Observable<Part> {
    return echo(parts);
  }

  @GrpcStreamMethod('Uploads')
  @WithLock(KEY, OPTIONS)
  async asyncBelow(parts: Observable<Part>): Promise<Observable<Part>> {
    return echo(parts);
  }

  @WithLock(KEY, OPTIONS)
  @GrpcStreamMethod('Uploads')
  async asyncAbove(parts: Observable<Part>): Promise<Observable<Part>> {
    return echo(parts);
  }

  @GrpcStreamMethod('Uploads')
  @WithLock(KEY, OPTIONS)
  declared(parts: Observable<Part>): Declared<Part> {
    return echo(parts);
  }

  @GrpcStreamMethod('Uploads')
  inner(parts: Observable<Part>): Observable<Part> {
    return this.locked(parts);
  }

  @WithLock(KEY, OPTIONS)
  locked(parts: Observable<Part>): Observable<Part> {
    return echo(parts);
  }

  @GrpcStreamMethod('Uploads')
  @WithLock(KEY, OPTIONS)
  collected(parts: Observable<Part>): Observable<{ count: number }> {
    return parts.pipe(
      toArray(),
      map((all) => ({ count: all.length })),
    );
  }
}

@Controller()
class OtherUploads {
  @GrpcStreamMethod('Uploads')
  @WithLock(KEY, { wait: '5s' })
  async awaited(parts: Observable<Part>): Promise<{ count: number }> {
    bodies.push('awaited');
    const all = await lastValueFrom(parts.pipe(toArray()));
    return { count: all.length };
  }

  @UseInterceptors(Tap)
  @GrpcStreamMethod('Uploads')
  @WithLock(KEY, { wait: '5s' })
  async awaitedTapped(parts: Observable<Part>): Promise<{ count: number }> {
    return this.awaited(parts);
  }

  @UseInterceptors(EndLog)
  @GrpcStreamMethod('Uploads')
  @WithLock(KEY, { wait: '5s' })
  async loggedLate(parts: Observable<Part>): Promise<{ count: number }> {
    await someTurns();
    return this.awaited(parts);
  }

  @UseInterceptors(Tap, Slow)
  @GrpcStreamMethod('Uploads')
  @WithLock(KEY, { wait: '5s' })
  async tappedLate(parts: Observable<Part>): Promise<{ count: number }> {
    return this.awaited(parts);
  }

  @GrpcStreamMethod('Uploads')
  @WithLock(KEY, OPTIONS)
  async cutOff(parts: Observable<Part>, _metadata: unknown, call: ServerCall): Promise<{ count: number }> {
    bodies.push('begins');
    const all = await lastValueFrom(parts.pipe(toArray()));
    bodies.push(call.cancelled ? 'is cut off' : 'is whole');
    return { count: all.length };
  }

  @UseInterceptors(Tap)
  @GrpcStreamMethod('Uploads')
  @WithLock('outer')
  async cutOffInside(parts: Observable<Part>): Promise<{ count: number }> {
    return this.awaited(parts);
  }

  @GrpcStreamMethod('Uploads')
  chat(parts: Observable<Part>): Observable<Part> {
    return merge(NEVER, echo(parts).pipe(tap({ complete: () => bodies.push('has left') })));
  }

  @GrpcStreamMethod('Uploads')
  @WithLock(KEY, OPTIONS)
  chatWithLock(parts: Observable<Part>): Declared<Part> {
    return this.chat(parts);
  }

  @UseInterceptors(EndLog)
  @GrpcStreamMethod('Uploads')
  loggedLater(parts: Observable<Part>): Observable<{ count: number }> {
    return defer(someTurns).pipe(concatMap(() => this.awaited(parts)));
  }

  @GrpcStreamMethod('Uploads')
  async failingBeside(parts: Observable<Part>, _metadata: unknown, call: ServerCall): Promise<Observable<Part>> {
    parts.subscribe({ error: () => bodies.push('error'), complete: () => bodies.push('complete') });
    await once(call, 'end');
    await someTurns();
    throw new RpcException('no more room');
  }

  @GrpcStreamMethod('Uploads')
  async lockedInside(parts: Observable<Part>): Promise<{ count: number }> {
    const head = parts.pipe(
      take(1),
      concatMap(() => this.rest(parts)),
    );
    return { count: (await firstValueFrom(head)).length };
  }

  @GrpcStreamMethod('Uploads')
  @WithLock(KEY, { wait: '5s' })
  async parted(parts: Observable<Part>): Promise<{ count: number }> {
    await firstValueFrom(parts);
    await someTurns();
    const rest = await lastValueFrom(parts.pipe(toArray()));
    const behind = await lastValueFrom(parts.pipe(toArray()));
    return { count: 10 * rest.length + behind.length };
  }

  @GrpcStreamMethod('Uploads')
  @WithLock(KEY, { wait: '5s' })
  async headedInside(parts: Observable<Part>): Promise<{ count: number }> {
    const { number } = await this.head(parts);
    const rest = await lastValueFrom(parts.pipe(toArray()));
    return { count: 10 * number + rest.length };
  }

  @WithLock('head')
  async head(parts: Observable<Part>): Promise<Part> {
    return firstValueFrom(parts);
  }

  @GrpcStreamMethod('Uploads')
  splitStreams(parts: Observable<Part>): Observable<Part> {
    const between = defer(someTurns).pipe(ignoreElements());
    return concat(
      this.firstPart(parts),
      between,
      defer(() => this.otherParts(parts)),
    );
  }

  @WithLock('head')
  firstPart(parts: Observable<Part>): Declared<Part> {
    return echo(parts).pipe(take(1));
  }

  @WithLock('rest')
  otherParts(parts: Observable<Part>): Declared<Part> {
    return echo(parts);
  }

  /** Another reader reads on. */
  @GrpcStreamMethod('Uploads')
  async splitUpBeside(parts: Observable<Part>): Promise<{ count: number }> {
    const nth = (one: number) => firstValueFrom(parts.pipe(filter(({ number }) => number === one)));
    return this.inTwo(parts, nth(2), nth(3));
  }

  @WithLock(KEY, OPTIONS)
  async inTwo(parts: Observable<Part>, ...[second, third]: Promise<Part>[]): Promise<{ count: number }> {
    const { number } = await this.headAfter(parts, second!);
    await third;
    const rest = await this.rest(parts);
    return { count: 10 * number + rest.length };
  }

  @WithLock('head')
  async headAfter(parts: Observable<Part>, other: Promise<Part>): Promise<Part> {
    await other;
    return firstValueFrom(parts);
  }

  @GrpcStreamMethod('Uploads')
  async splitUp(parts: Observable<Part>): Promise<{ count: number }> {
    const { number } = await this.head(parts);
    await someTurns();
    const rest = await this.rest(parts);
    return { count: 10 * number + rest.length };
  }

  @WithLock('rest')
  async rest(parts: Observable<Part>): Promise<Part[]> {
    return lastValueFrom(parts.pipe(toArray()));
  }

  @GrpcStreamMethod('Uploads')
  @WithLock(KEY, { wait: '5s' })
  async notedInside(parts: Observable<Part>): Promise<{ count: number }> {
    await this.note(parts);
    await someTurns();
    const all = await lastValueFrom(parts.pipe(toArray()));
    return { count: all.length };
  }

  @WithLock('note')
  async note(_parts: Observable<Part>): Promise<void> {
    await nextTurn();
  }

  @GrpcStreamMethod('Uploads')
  @WithLock(KEY, { wait: '5s' })
  async headed(parts: Observable<Part>): Promise<Observable<Part>> {
    const { number } = await firstValueFrom(parts);
    await nextTurn();
    return echo(parts).pipe(startWith({ number: 10 * number }));
  }

  @GrpcStreamMethod('Uploads')
  @WithLock('saves', OPTIONS)
  async savedWithStream(parts: Observable<Part>): Promise<{ count: number }> {
    const saved = await lastValueFrom(
      parts.pipe(
        concatMap(() => this.note(parts)),
        toArray(),
      ),
    );
    return { count: saved.length };
  }

  @GrpcStreamMethod('Uploads')
  @WithLock(KEY, OPTIONS)
  async savedAtTheEnd(parts: Observable<Part>): Promise<{ count: number }> {
    const last = parts.pipe(
      toArray(),
      concatMap((all) => this.save(all.at(-1)!)),
    );
    return { count: (await lastValueFrom(last)).number };
  }

  @GrpcStreamMethod('Uploads')
  async readTwice(parts: Observable<Part>): Promise<{ count: number }> {
    const first = this.all(parts);
    const second = nextTurn().then(() => this.all(parts));
    return { count: 10 * (await first) + (await second) };
  }

  @WithLock(KEY, OPTIONS)
  async all(parts: Observable<Part>): Promise<number> {
    return (await lastValueFrom(parts.pipe(toArray()))).length;
  }

  @GrpcStreamMethod('Uploads')
  async awaitedBeside(parts: Observable<Part>): Promise<{ count: number }> {
    const [rest, all] = await Promise.all([this.rest(parts), this.all(parts)]);
    return { count: 10 * rest.length + all };
  }

  @GrpcStreamMethod('Uploads')
  beside(parts: Observable<Part>): Observable<Part> {
    return merge(this.tens(parts), this.locked(parts));
  }

  @WithLock('tens')
  tens(parts: Observable<Part>): Declared<Part> {
    return parts.pipe(map(({ number }) => ({ number: 10 * number })));
  }

  @WithLock(KEY, OPTIONS)
  locked(parts: Observable<Part>): Declared<Part> {
    return echo(parts);
  }

  @GrpcStreamMethod('Uploads')
  behind(parts: Observable<Part>): Observable<Part> {
    return concat(echo(parts), this.locked(parts));
  }

  @GrpcStreamMethod('Uploads')
  notRead(parts: Observable<Part>): Observable<Part> {
    const locked = this.locked(parts);
    return iif(() => false, locked, echo(parts));
  }

  @GrpcStreamMethod('Uploads')
  withoutKey(parts: Observable<Part>): Observable<Part> {
    return this.keyed('', parts).pipe(catchError(() => echo(parts)));
  }

  @WithLock('of:<id>')
  keyed(id: string, parts: Observable<Part>): Declared<Part> {
    return id === '' ? NEVER : parts;
  }

  @GrpcStreamMethod('Uploads')
  @WithLock(KEY, OPTIONS)
  async refused(parts: Observable<Part>): Promise<Observable<Part>> {
    const { length } = await lastValueFrom(parts.pipe(toArray()));
    throw new RpcException(`${length} are too many`);
  }

  @GrpcStreamMethod('Uploads')
  @WithLock(KEY, OPTIONS)
  async readAgain(parts: Observable<Part>): Promise<Observable<Part>> {
    const { length } = await lastValueFrom(parts.pipe(toArray()));
    return echo(parts).pipe(startWith({ number: 10 * length }));
  }

  @GrpcStreamMethod('Uploads')
  sorted(parts: Observable<Part>): Observable<Part> {
    const kinds = Array.from({ length: 12 }, (_, kind) => parts.pipe(filter(({ number }) => number === kind)));
    return echo(merge(...kinds));
  }

  @GrpcStreamMethod('Uploads')
  @WithLock(KEY, OPTIONS)
  saved(parts: Observable<Part>): Observable<Part> {
    return parts.pipe(concatMap((part) => this.save(part)));
  }

  @WithLock(KEY, OPTIONS)
  async save({ number }: Part): Promise<Part> {
    return { number };
  }

  @GrpcStreamMethod('Uploads')
  async replied(parts: Observable<Part>): Promise<Observable<Part>> {
    const replies = new Subject<Part>();
    parts.subscribe({ next: (part) => replies.next({ number: part.number }), complete: () => replies.complete() });
    await nextTurn();
    return replies;
  }

  @GrpcStreamMethod('Uploads')
  async afterTheFirst(parts: Observable<Part>): Promise<Observable<Part>> {
    const { number } = await firstValueFrom(parts);
    return of({ number });
  }

  @GrpcStreamMethod('Uploads')
  untilTheThird(parts: Observable<Part>): Promise<Part> {
    return new Promise((resolve) => parts.subscribe((part) => part.number === 3 && resolve({ number: 3 })));
  }

  @GrpcStreamMethod('Uploads')
  piped(@Payload(new Mapped()) parts: Observable<Part>): Observable<Part> {
    return echo(parts);
  }

  @UseInterceptors(Mapping)
  @GrpcStreamMethod('Uploads')
  mapped(parts: Observable<Part>): Observable<Part> {
    return echo(parts);
  }

  @UseInterceptors(Mapping)
  @GrpcStreamMethod('Uploads')
  @WithLock(KEY, OPTIONS)
  mappedWithLock(parts: Observable<Part>): Observable<Part> {
    return echo(parts);
  }

  @GrpcStreamMethod('Uploads')
  failing(_parts: Observable<Part>, _metadata: unknown, call: Readable): Observable<Part> {
    const replies = new Subject<Part>();
    call.on('data', (part: Part) => replies.next({ number: part.number }));
    call.on('end', () => replies.error(new RpcException('a bad upload')));
    return replies;
  }

  @UseInterceptors(Tap)
  @GrpcStreamMethod('Uploads')
  tapped(parts: Observable<Part>): Observable<Part> {
    return echo(parts);
  }

  @UseInterceptors(Tap)
  @GrpcStreamMethod('Uploads')
  @WithLock(KEY, OPTIONS)
  tappedWithLock(parts: Observable<Part>): Observable<Part> {
    return echo(parts);
  }

  @UseInterceptors(Tap)
  @GrpcStreamMethod('Uploads')
  @WithLock(KEY, OPTIONS)
  async tappedAsync(parts: Observable<Part>): Promise<Observable<Part>> {
    return echo(parts);
  }

  @UseInterceptors(Tap)
  @GrpcStreamMethod('Uploads')
  @WithLock(KEY, OPTIONS)
  tappedAndSorted(parts: Observable<Part>): Declared<Part> {
    return merge(echo(parts).pipe(filter(({ number }) => number > 1)), echo(parts).pipe(take(1)));
  }

  @GrpcStreamMethod('Uploads')
  readAgainLater(parts: Observable<Part>): Observable<Part> {
    return concat(echo(parts), echo(parts), of({ number: 7 }));
  }

  @GrpcStreamMethod('Uploads')
  listening(_parts: Observable<Part>, _metadata: unknown, call: Readable): Observable<Part> {
    return concat(NEVER.pipe(takeUntil(fromEvent(call, 'end'))), of({ number: 7 }));
  }

  @GrpcMethod('Uploads')
  @WithLock(KEY, { wait: '5s', lease: '1m' })
  async feed(): Promise<Observable<Part>> {
    bodies.push('feed');
    return NEVER;
  }
}

/** Made for each request, after the client has sent something. */
const SLOW = { provide: 'slow', scope: Scope.REQUEST, useFactory: () => isSent.promise };
let isSent = deferred();

@Controller()
class ScopedUploads {
  constructor(@Inject('slow') _slow: unknown) {}

  @GrpcStreamMethod('Uploads')
  @WithLock(KEY, OPTIONS)
  async awaitedLate(parts: Observable<Part>): Promise<{ count: number }> {
    return { count: (await lastValueFrom(parts.pipe(toArray()))).length };
  }
}

const counted = async ({ args }: { readonly args: readonly unknown[] }) => {
  bodies.push('counted');
  return { count: (await lastValueFrom((args[0] as Observable<Part>).pipe(toArray()))).length };
};

@Controller()
class BusyUploads {
  @GrpcStreamMethod('Uploads')
  heldBack(parts: Observable<Part>, _metadata: unknown, call: ServerCall): Observable<Part> {
    call.pause();
    heldBack.resolve(call);
    return echo(parts);
  }

  @GrpcStreamMethod('Uploads')
  @WithLock(KEY, OPTIONS)
  heldBackWithLock(parts: Observable<Part>, _metadata: unknown, call: ServerCall): Observable<Part> {
    return this.heldBack(parts, _metadata, call);
  }

  @GrpcStreamMethod('Uploads')
  @WithLock(KEY, { wait: '300ms', onTimeout: counted })
  async countedInstead(_parts: Observable<Part>): Promise<{ count: number }> {
    return { count: 0 };
  }

  @GrpcStreamMethod('Uploads')
  @WithLock(KEY, OPTIONS)
  readByCall(parts: Observable<Part>, _metadata: unknown, call: ServerCall): Observable<Part> {
    unread = new WeakRef(parts);
    return (fromEvent(call, 'data') as Observable<Part>).pipe(takeUntil(fromEvent(call, 'end')));
  }

  @GrpcStreamMethod('Uploads')
  @WithLock(KEY, { ...OPTIONS, onTimeout: counted })
  awaitedByCall(parts: Observable<Part>, _metadata: unknown, call: ServerCall): Promise<{ count: number }> {
    unread = new WeakRef(parts);
    return lastValueFrom(fromEvent(call, 'data').pipe(takeUntil(fromEvent(call, 'end')), toArray())).then(
      ({ length }) => ({ count: length }),
    );
  }

  @GrpcStreamCall('Uploads')
  async ofCall(call: ServerCall & Duplex): Promise<void> {
    await this.allOfCall(call).then(
      (number) => call.write({ number }),
      () => undefined,
    );
    call.end();
  }

  /** Passes on the status of another service, which the client sends here, and saves in the background. */
  @GrpcStreamMethod('Uploads')
  async passedOn(parts: Observable<Part>, _metadata: unknown, call: ServerCall): Promise<never> {
    const { number: code } = await firstValueFrom(parts);
    saved = this.ofPeer(call, code);
    throw new RpcException({ code, message: 'refused' });
  }

  /** Answers before its method has the lock. */
  @GrpcStreamCall('Uploads')
  ofCallAnswered(call: ServerCall & Duplex): void {
    saved = this.allOfCall(call);
    call.end();
  }

  /** Calls its method when the client has left. */
  @GrpcStreamCall('Uploads')
  ofCallLater(call: ServerCall & Duplex): void {
    call.on('cancelled', () => (saved = this.allOfCall(call)));
  }

  @GrpcStreamCall('Uploads')
  cleansUp(call: ServerCall & Duplex): void {
    call.on('data', () => undefined);
    call.on('cancelled', () => (saved = this.ofPeer(call, 7)));
  }

  @GrpcStreamMethod('Uploads')
  async callAlone(_parts: Observable<Part>, _metadata: unknown, call: ServerCall): Promise<{ count: number }> {
    return { count: await this.allOfCall(call) };
  }

  @WithLock(KEY, OPTIONS)
  async allOfCall(call: ServerCall): Promise<number> {
    bodies.push('all of call');
    let number = 0;
    call.on('data', () => number++);
    await once(call, 'end');
    return number;
  }

  /** Answers, and saves in the background. */
  @GrpcStreamMethod('Uploads')
  async accepted(parts: Observable<Part>, _metadata: unknown, call: ServerCall): Promise<{ count: number }> {
    saved = this.all(parts);
    await once(call, 'end');
    return { count: 3 };
  }

  @WithLock(KEY, OPTIONS)
  async all(parts: Observable<Part>): Promise<number> {
    return (await lastValueFrom(parts.pipe(toArray()))).length;
  }

  @GrpcStreamMethod('Uploads')
  async acceptedByCall(parts: Observable<Part>, _metadata: unknown, call: ServerCall): Promise<{ count: number }> {
    saved = this.ofPeer(call, 3);
    await firstValueFrom(parts);
    return { count: 3 };
  }

  @WithLock(KEY, OPTIONS)
  async ofPeer(_call: ServerCall, count: number): Promise<number> {
    return count;
  }

  @GrpcStreamMethod('Uploads')
  @WithLock(KEY, { ...OPTIONS, atLeast: '1h' })
  async awaitedForLong(parts: Observable<Part>): Promise<{ count: number }> {
    bodies.push('awaited for long');
    return { count: (await lastValueFrom(parts.pipe(toArray()))).length };
  }

  @GrpcStreamMethod('Uploads')
  async countedBeside(parts: Observable<Part>): Promise<{ count: number }> {
    const [count] = await Promise.all([this.countedInstead(parts), firstValueFrom(parts)]);
    return count;
  }
}

/** Made before the guards run. */
@Controller({ scope: Scope.REQUEST })
class UploadsOfRequest {
  constructor(@Inject(REQUEST) private readonly request: { readonly data: Observable<Part> }) {}

  @GrpcStreamMethod('Uploads')
  ofRequest(_parts: Observable<Part>): Observable<Part> {
    return echo(this.request.data);
  }

  @GrpcStreamMethod('Uploads')
  async ofRequestWithLock(_parts: Observable<Part>): Promise<{ count: number }> {
    return this.all(this.request.data);
  }

  @WithLock(KEY, OPTIONS)
  async all(parts: Observable<Part>): Promise<{ count: number }> {
    return { count: (await lastValueFrom(parts.pipe(toArray()))).length };
  }
}

/** The call that its handler has paused. */
let heldBack = deferred<ServerCall>();
/** What a method gets of its client, and does not read. */
let unread: WeakRef<Observable<Part>> | undefined;
/** What a handler saves when its client has the answer. */
let saved: Promise<number> | undefined;

async function someTurns(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await nextTurn();
}

const echo = (parts: Observable<Part>): Observable<Part> => parts.pipe(map(({ number }) => ({ number })));

let app: INestMicroservice;
let locks: LockService;
let client: Client;

beforeEach(async () => {
  saved = undefined;
  const url = `127.0.0.1:${await freePort()}`;
  const module = Test.createTestingModule({
    imports: [LockTestingModule.forRoot()],
    controllers: [Uploads, OtherUploads, ScopedUploads, BusyUploads, UploadsOfRequest],
    providers: [SLOW],
  });
  app = (await module.compile()).createNestMicroservice<MicroserviceOptions>({
    transport: Transport.GRPC,
    options: { url, package: 'uploads', protoPath: PROTO },
    logger: false,
  });
  await app.listen();
  locks = app.get(LockService);
  client = new Client(url, credentials.createInsecure());
});

afterEach(async () => {
  client.close();
  await app.close();
});

/** Protocol buffers by hand: one field, a small number. */
const written = ({ number }: Part): Buffer => Buffer.from([8, number]);
const read = (bytes: Buffer): number => bytes[1] ?? 0;

type Call = ClientDuplexStream<Part, number>;

const called = (method: string): Call => client.makeBidiStreamRequest(`/uploads.Uploads/${method}`, written, read);

function sendAll(call: Call, numbers: readonly number[]): void {
  for (const number of numbers) call.write({ number });
  call.end();
}

/** Sends each of them when the one before has its reply. */
async function answeredEach(call: Call, numbers: readonly number[]): Promise<void> {
  for (const number of numbers) {
    const reply = once(call, 'data');
    call.write({ number });
    expect(await reply).toEqual([number]);
  }
}

/** Reads until the server ends the call; adds its message when it is an error. */
async function answer(call: Call): Promise<(number | string)[]> {
  const all: (number | string)[] = [];
  call.on('data', (number: number) => all.push(number));
  call.on('error', ({ details }: ServiceError) => all.push(details));
  await new Promise((resolve) => call.on('status', resolve));
  await nextTurn();
  return all;
}

/** Sends three messages to a method that waits for its key, and then lets it have that. */
async function answerAfterWait(method: string): Promise<(number | string)[]> {
  const held = await locks.lock(KEY);
  const waits = event('queued');
  const call = called(method);
  const answered = answer(call);
  sendAll(call, [1, 2, 3]);
  await waits;
  await held.unlock();
  return answered;
}

const event = (wanted: string) => firstValueFrom(locks.events.pipe(filter(({ type }) => type === wanted)));

const isFree = async () => !(await locks.isLocked(KEY));

const METHODS = ['Declared', 'Below', 'Above', 'AsyncBelow', 'AsyncAbove', 'Inner'];

describe.each(METHODS)('a lock on a gRPC method that reads a stream: %s', (method) => {
  it('gets each message, in order, when its key is free', async () => {
    const call = called(method);
    sendAll(call, [1, 2, 3]);
    expect(await answer(call)).toEqual([1, 2, 3]);
    expect(await locks.isLocked(KEY)).toBe(false);
  });

  it('gets what was sent while it waited, also when the client has ended its stream by then', async () => {
    expect(await answerAfterWait(method)).toEqual([1, 2, 3]);
  });

  it('gets what is sent later, too, and keeps its lock meanwhile', async () => {
    const call = called(method);
    const answered = answer(call);
    const first = once(call, 'data');
    call.write({ number: 1 });
    await first;
    expect(await locks.isLocked(KEY)).toBe(true);
    sendAll(call, [2, 3]);
    expect(await answered).toEqual([1, 2, 3]);
  });

  it('tells a client that has ended its stream that the key is busy, and the log which call it was', async () => {
    const warn = jest.fn<(line: string) => void>();
    Logger.overrideLogger({ log: () => undefined, warn, error: () => undefined });
    const held: Lock = await locks.lock(KEY);
    const call = called(method);
    sendAll(call, [1]);
    expect(await answer(call)).toEqual(['Another request is working on this right now. Try again in a moment.']);
    expect(warn.mock.calls[0]?.[0]).toContain(
      `Message "/uploads.Uploads/${method}": Gave up waiting for lock "${KEY}"`,
    );
    await held.unlock();
    const next = called(method);
    sendAll(next, [4]);
    expect(await answer(next)).toEqual([4]);
  });
});

it('a gRPC method with one answer gets each message of its request', async () => {
  const call = called('Collected');
  sendAll(call, [1, 2, 3]);
  expect(await answer(call)).toEqual([3]);
});

it('is prepared before the guards of the app: an asynchronous one lets Nest 11 forget the messages', async () => {
  const call = called('Below');
  sendAll(call, [1]);
  expect(await answer(call)).toEqual([1]);
  expect(wasPaused).toBe(true);
});

it('a body can await the whole stream', async () => {
  const call = called('Awaited');
  sendAll(call, [1, 2, 3]);
  expect(await answer(call)).toEqual([3]);
});

it('a body is inside its lock also for what it does at the end of the stream', async () => {
  const call = called('SavedAtTheEnd');
  const answered = answer(call);
  call.write({ number: 1 });
  await received();
  sendAll(call, [2, 3]);
  expect(await answered).toEqual([3]);
});

it('a body can await what came before its controller was made', async () => {
  for (const later of [[3], []]) {
    isSent = deferred();
    const call = called('AwaitedLate');
    const answered = answer(call);
    for (const number of [1, 2]) call.write({ number });
    if (later.length === 0) call.end();
    await received();
    isSent.resolve();
    if (later.length > 0) sendAll(call, later);
    expect(await answered).toEqual([2 + later.length]);
  }
});

it('a body can await the first message, then the others, and then gets the end', async () => {
  const call = called('Parted');
  sendAll(call, [1, 2, 3]);
  expect(await answer(call)).toEqual([20]);
});

it.each([
  ['all, also when somebody listens to the end of the call: LoggedLate', 3],
  ['all, also then when the handler has returned: LoggedLater', 3],
  ['all, also when an interceptor has read it before: TappedLate', 3],
  ['what comes after the message that it is called for: LockedInside', 2],
  ['all, when it takes the stream from REQUEST: OfRequestWithLock', 3],
])('a body gets %s', async (what, count) => {
  const method = what.split(': ').at(-1)!;
  const [held, rest] = [await locks.lock(KEY), await locks.lock('rest')];
  const waits = event('queued');
  const busy = called(method);
  for (const number of [1, 2, 3]) busy.write({ number });
  await waits;
  await Promise.all([held.unlock(), rest.unlock()]);
  await received();
  busy.end();
  expect(await answer(busy)).toEqual([count]);
  const free = called(method);
  sendAll(free, [1, 2, 3]);
  expect(await answer(free)).toEqual([count]);
});

it.each([
  ['HeadedInside', 12],
  ['NotedInside', 3],
])('a body can await the stream that a locked method inside has had before: %s', async (method, reply) => {
  expect(await answerAfterWait(method)).toEqual([reply]);
  const free = called(method);
  sendAll(free, [1, 2, 3]);
  expect(await answer(free)).toEqual([reply]);
});

it.each([
  ['SplitUp', [1, 2, 3], 12],
  ['SplitUpBeside', [1, 2, 3, 4], 13],
  ['SplitStreams', [1, 2, 3], 1, 2, 3],
])('two locked methods can read one stream, one after the other: %s', async (method, numbers, ...replies) => {
  const call = called(method);
  sendAll(call, numbers);
  expect(await answer(call)).toEqual(replies);
});

it.each(['OfCall', 'CallAlone'])('a method can read the call itself: %s', async (method) => {
  expect(await answerAfterWait(method)).toEqual([3]);
});

it.each(['Accepted', 'AcceptedByCall'])('a method works on when its client has the answer: %s', async (method) => {
  const held = await locks.lock(KEY);
  const call = called(method);
  sendAll(call, [1, 2, 3]);
  expect(await answer(call)).toEqual([3]);
  await received();
  await held.unlock();
  expect(await saved).toBe(3);
});

it.each([1, 3, 4])('a method works on when its client has an error as the answer: status %s', async (code) => {
  const held = await locks.lock(KEY);
  const call = called('PassedOn');
  call.write({ number: code });
  expect(await answer(call)).toEqual(['refused']);
  await received();
  await held.unlock();
  expect(await saved).toBe(code);
});

it('a method that waits for its lock does not read a call that has its answer', async () => {
  const held = await locks.lock(KEY);
  const call = called('OfCallAnswered');
  sendAll(call, [1, 2, 3]);
  await answer(call);
  await received();
  await held.unlock();
  await expect(saved).rejects.toHaveProperty('status', 499);
  await until(isFree);
});

it.each(['CountedInstead', 'CountedBeside'])('"onTimeout" can await the whole stream, too: %s', async (method) => {
  await using held = await locks.lock(KEY);
  const call = called(method);
  sendAll(call, [1, 2, 3]);
  expect(await answer(call)).toEqual([3]);
  held.assertHeld();
});

it.each(['HeldBack', 'HeldBackWithLock'])(
  'a handler can pause its call, until it lets it go on: %s',
  async (method) => {
    heldBack = deferred();
    const call = called(method);
    const replies: number[] = [];
    call.on('data', (number: number) => replies.push(number));
    sendAll(call, [1, 2, 3]);
    const paused = await heldBack.promise;
    await received();
    expect([paused.isPaused(), replies]).toEqual([true, []]);
    paused.resume();
    await answer(call);
    expect(replies).toEqual([1, 2, 3]);
  },
);

it('a body can await the first message, and then gets all as Nest sends them again', async () => {
  expect(await answerAfterWait('Headed')).toEqual([10, 1, 2, 3]);
});

describe('methods with a lock that read one stream beside others', () => {
  it.each([
    ['SavedWithStream', [3]],
    ['AwaitedBeside', [33]],
    ['Beside', [1, 2, 3, 10, 20, 30]],
    // Nothing comes after the end.
    ['Behind', [1, 2, 3]],
    ['NotRead', [1, 2, 3]],
    ['WithoutKey', [1, 2, 3]],
    ['TappedAsync', [1, 2, 3]],
    ['TappedAndSorted', [1, 2, 3]],
  ] as const)('get each message that comes from their call on: %s', async (method, replies) => {
    const inOrder = (all: (number | string)[]) => all.sort((one, other) => Number(one) - Number(other));
    const free = called(method);
    sendAll(free, [1, 2, 3]);
    expect(inOrder(await answer(free))).toEqual(replies);

    const [held, noted] = [await locks.lock(KEY), await locks.lock('note')];
    const busy = called(method);
    const answered = answer(busy);
    sendAll(busy, [1, 2, 3]);
    await received();
    await Promise.all([held.unlock(), noted.unlock()]);
    expect(inOrder(await answered)).toEqual(replies);
  });

  it('one that waits does not hold back the one that has the key', async () => {
    const call = called('ReadTwice');
    const answered = answer(call);
    call.write({ number: 1 });
    await event('queued');
    sendAll(call, [2, 3]);
    expect([32, 33]).toContain((await answered)[0]);
  });

  it('a body that has read all can fail, and can read all again', async () => {
    const refused = called('Refused');
    sendAll(refused, [1, 2, 3]);
    expect(await answer(refused)).toEqual(['3 are too many']);
    const again = called('ReadAgain');
    sendAll(again, [1, 2, 3]);
    expect(await answer(again)).toEqual([30, 1, 2, 3]);
  });

  it('as many may subscribe as like', async () => {
    const warnings: Error[] = [];
    const note = (warning: Error) => warnings.push(warning);
    process.on('warning', note);
    const call = called('Sorted');
    sendAll(call, [1, 2, 3]);
    expect(await answer(call)).toEqual([1, 2, 3]);
    process.off('warning', note);
    expect(warnings).toEqual([]);
  });
});

it('a body knows that its client has left in the middle when the stream ends', async () => {
  for (let nth = 0; nth < 20; nth++) {
    bodies.length = 0;
    const call = called('CutOff');
    call.on('error', () => undefined);
    call.write({ number: 1 });
    await until(() => bodies.length > 0);
    call.cancel();
    await until(() => bodies.length > 1);
    expect(bodies).toEqual(['begins', 'is cut off']);
  }
});

it('a body is inside its lock also for messages that come later', async () => {
  const call = called('Saved');
  const answered = answer(call);
  await answeredEach(call, [1, 2, 3]);
  call.end();
  expect(await answered).toEqual([1, 2, 3]);
});

describe('a gRPC method that reads a stream as Nest alone lets it', () => {
  it.each(['Replied', 'Tapped', 'TappedWithLock', 'OfRequest'])('gets each message: %s', async (method) => {
    const call = called(method);
    sendAll(call, [1, 2, 3]);
    expect(await answer(call)).toEqual([1, 2, 3]);
  });

  it.each([
    ['AfterTheFirst', [1]],
    ['UntilTheThird', [3]],
  ] as const)('gets them before it returns: %s', async (method, replies) => {
    const call = called(method);
    const answered = answer(call);
    for (const number of [1, 2, 3]) call.write({ number });
    expect(await answered).toEqual(replies);
  });

  it.each(['Piped', 'Mapped', 'MappedWithLock'])('gets each message while its client goes on: %s', async (method) => {
    const call = called(method);
    const answered = answer(call);
    await answeredEach(call, [1, 2, 3]);
    // Nest 12 does not end such a stream.
    call.cancel();
    expect(await answered).toEqual([1, 2, 3, expect.stringContaining('ancelled')]);
  });

  it('hears the end of the stream also when it subscribes after it', async () => {
    const call = called('ReadAgainLater');
    sendAll(call, [1, 2, 3]);
    expect(await answer(call)).toEqual([1, 2, 3, 7]);
  });

  it('answers with its error when it reads the call itself, and fails after the end', async () => {
    const call = called('Failing');
    sendAll(call, [1, 2]);
    expect(await answer(call)).toEqual([1, 2, 'a bad upload']);
  });

  it.each(['Chat', 'ChatWithLock'])('hears the end of the stream when its client leaves: %s', async (method) => {
    bodies.length = 0;
    const call = called(method);
    call.on('error', () => undefined);
    await answeredEach(call, [1]);
    call.cancel();
    await until(() => bodies.length > 0);
    expect(bodies).toEqual(['has left']);
  });

  it('hears that it has failed when the client has ended its stream', async () => {
    bodies.length = 0;
    const call = called('FailingBeside');
    sendAll(call, [1, 2]);
    expect(await answer(call)).toEqual(['no more room']);
    await until(() => bodies.length > 0);
    expect(bodies).toEqual(['error']);
  });

  it.each(['ReadByCall', 'AwaitedByCall'])(
    'keeps in memory nothing that it reads from the call: %s',
    async (method) => {
      unread = undefined;
      const call = called(method);
      call.write({ number: 1 });
      // The stream would keep all messages that come after it was made.
      await until(() => {
        collectGarbage();
        return unread !== undefined && unread.deref() === undefined;
      });
      sendAll(call, [2, 3]);
      expect(await answer(call)).toEqual(method === 'ReadByCall' ? [1, 2, 3] : [3]);
    },
  );

  it('hears the end of a call whose stream nobody reads', async () => {
    const call = called('Listening');
    sendAll(call, [1, 2, 3]);
    expect(await answer(call)).toEqual([7]);
  });
});

describe('a gRPC client that leaves while the method waits for its lock', () => {
  beforeEach(() => void (bodies.length = 0));

  it('does not make a nested body run on a part of what it sends, though somebody has read that', async () => {
    const held = await locks.lock(KEY);
    const waits = event('queued');
    const call = called('CutOffInside');
    for (const number of [1, 2, 3]) call.write({ number });
    await waits;
    await received();
    call.cancel();
    await answer(call);
    await received();
    await held.unlock();
    await until(isFree);
    expect(bodies).toEqual([]);
  });

  it('does not make "onTimeout" run without what it has sent', async () => {
    await using held = await locks.lock(KEY);
    const [waits, timesOut] = [event('queued'), event('timeout')];
    const call = called('CountedInstead');
    sendAll(call, [1, 2, 3]);
    await waits;
    call.cancel();
    await answer(call);
    await timesOut;
    await received();
    expect(bodies).toEqual([]);
    held.assertHeld();
  });

  it.each(['Awaited', 'AwaitedTapped', 'OfCall', 'CallAlone', 'AwaitedForLong'])(
    'does not make the body run without what it has sent: %s',
    async (method) => {
      const held = await locks.lock(KEY);
      const waits = event('queued');
      const call = called(method);
      sendAll(call, [1, 2, 3]);
      await waits;
      call.cancel();
      await answer(call);
      await received();
      await held.unlock();
      await until(isFree);
      expect(bodies).toEqual([]);
    },
  );

  it('makes no method wait for ever for a call that was over before', async () => {
    const call = called('OfCallLater');
    call.write({ number: 1 });
    await received();
    call.cancel();
    await answer(call);
    await until(() => saved !== undefined);
    await expect(saved).rejects.toHaveProperty('status', 499);
    await until(isFree);
    expect(bodies).toEqual([]);
  });

  it('lets a method clean up that gets the call', async () => {
    const call = called('CleansUp');
    call.write({ number: 1 });
    await received();
    call.cancel();
    await answer(call);
    await until(() => saved !== undefined);
    expect(await saved).toBe(7);
  });

  it('keeps the key no longer than a second when nobody reads what the method returns', async () => {
    const held = await locks.lock(KEY);
    const waits = event('queued');
    const call = client.makeServerStreamRequest('/uploads.Uploads/Feed', written, read, { number: 1 });
    call.on('error', () => undefined);
    await waits;
    call.cancel();
    await received();
    const releasedAt = performance.now();
    await held.unlock();
    await until(async () => bodies.length > 0 && (await isFree()), 10_000);
    expect(performance.now() - releasedAt).toBeLessThan(5000);
  });
});

/** Resolves when the server has received what was sent before: a call over the same connection has its answer. */
async function received(): Promise<void> {
  const call = called('Listening');
  call.end();
  await answer(call);
}
