import { EventEmitter } from 'node:events';
import { Readable } from 'node:stream';
import type { ExecutionContext } from '@nestjs/common';
import { nextTick } from '../clock/next-tick.js';
import { hasClientLeft, noteAnswer } from './answered-call.js';
import { ClientMessages, isRequestStream, type RequestStream } from './client-messages.js';
import { ClientStream } from './client-stream.js';
import { clientGone } from './http-request.js';

/**
 * Where the call stands among the arguments of a message handler: behind the message and the metadata. A handler with
 * `@GrpcStreamCall` gets it first.
 */
const CALL = 2;

/** A call of gRPC, of `@grpc/grpc-js`. */
interface GrpcCall extends EventEmitter {
  /** Whether it has ended, because its client has cancelled it or has its answer. */
  readonly cancelled: boolean;
}

/** One whose client streams. */
type ReadCall = GrpcCall & Readable;

/** The calls that are prepared, by what a method may get of them: the call itself and the stream of its client. */
const calls = new WeakMap<object, GrpcCall>();

/** Those among them that are streams, also in the form that Nest has made. */
const streams = new WeakMap<object, ClientStream>();

/** The stream of each call whose handler gets one. */
const streamsOf = new WeakMap<GrpcCall, ClientStream>();

/** Whether there was any: most apps have none, and need not look at the arguments of their methods. */
let areThereAny = false;

/**
 * Lets a handler of gRPC wait for its lock as long as it takes.
 *
 * It tells also late listeners that the client has cancelled the call. Nest begins to listen for that when it
 * subscribes to what the handler has returned: for a client that left before, Nest 11 would never unsubscribe.
 *
 * And what the client streams is read late. Nest by itself keeps it only until the method has returned, which may be
 * before it has its lock; and Nest 11 forgets all when the client has ended its stream.
 */
export function prepareGrpcCall(context: ExecutionContext): void {
  if (context.getType() !== 'rpc') return;
  const args = context.getArgs<unknown[]>();
  const stream = args[0];
  const call = isGrpcCall(args[CALL]) ? args[CALL] : stream;
  if (!isGrpcCall(call) || calls.has(call)) return;
  calls.set(call, call);
  noteAnswer(call);
  areThereAny = true;
  const ours = isRequestStream(stream) && call instanceof Readable ? streamOf(stream, call) : undefined;
  tellLateListeners(call, ours);
  if (ours) args[0] = ours;
}

/** Makes the stream of the handler. Who has got that of Nest, as from `REQUEST`, reads the same. */
function streamOf(stream: RequestStream, call: ReadCall): ClientStream {
  const ours = noted(new ClientStream(new ClientMessages(stream, call)), call);
  stream.source = ours;
  streams.set(stream, ours);
  streamsOf.set(call, ours);
  calls.set(stream, call);
  return ours;
}

function noted(stream: ClientStream, call: GrpcCall): ClientStream {
  calls.set(stream, call);
  streams.set(stream, stream);
  return stream;
}

/** Gives a call of a method with a lock streams of its own in place of those that clients of gRPC send. */
export function withStreams(args: readonly unknown[]): CallStreams | undefined {
  return areThereAny && args.some((arg) => streamIn(arg) ?? readCallIn(arg)) ? new CallStreams(args) : undefined;
}

/** Asks nothing of the value itself: it may be a Proxy of the app. */
const streamIn = (value: unknown): ClientStream | undefined => streams.get(value as object);

/**
 * The call itself, if a method may be the one that reads it. A call that has ended is passed on for something else if
 * it was read: such as to clean up.
 */
function readCallIn(value: unknown): ReadCall | undefined {
  const call = calls.get(value as object);
  if (call !== value || !(call instanceof Readable)) return undefined;
  const stream = streamsOf.get(call);
  const wasRead = stream ? stream.wasRead : call.readableDidRead || hasReader(call);
  return call.cancelled && wasRead ? undefined : call;
}

const hasReader = (call: ReadCall): boolean => ['data', 'readable'].some((event) => call.listenerCount(event) > 0);

/**
 * Whether nobody gets what the client has sent: its call has ended before that was read. A method that gets only the
 * call would wait for it for ever. If somebody else reads the call, or has read it, the method gets it for another
 * reason, such as to reply.
 */
function isLost(call: ReadCall): boolean {
  if (!call.cancelled || call.readableEnded) return false;
  return streamsOf.has(call) ? hasClientLeft(call) || !streamsOf.get(call)!.wasRead : !hasReader(call);
}

/** The arguments of a call of a method with a lock, with streams among them. */
export class CallStreams {
  readonly args: unknown[];
  readonly #streams: ClientStream[] = [];
  /** Calls that the method may read instead of a stream. */
  readonly #readCalls: readonly ReadCall[];

  constructor(args: readonly unknown[]) {
    this.#readCalls = (args.some(streamIn) ? [] : args).map(readCallIn).filter((call) => call !== undefined);
    this.args = args.map((arg) => {
      const outer = streamIn(arg);
      if (!outer) return arg;
      const stream = noted(outer.forCall(), calls.get(outer)!);
      this.#streams.push(stream);
      return stream;
    });
  }

  /** @throws HttpException when the body must not run: what a client has sent is gone, as it left during the wait */
  assertSent(): void {
    if (this.#streams.some(({ isGone }) => isGone) || this.#readCalls.some(isLost)) throw clientGone();
  }
}

/** Whether the arguments of a method are those of a gRPC call that has ended. Nest 12 reads nothing for it. */
export const hasCallEnded = (args: readonly unknown[]): boolean =>
  areThereAny && args.some((arg) => typeof arg === 'object' && arg !== null && calls.get(arg)?.cancelled);

function isGrpcCall(value: unknown): value is GrpcCall {
  return value instanceof EventEmitter && typeof (value as Partial<GrpcCall>).cancelled === 'boolean';
}

/** Whether a call has ended before all was read: `end` never comes. */
const isDead = (call: GrpcCall): boolean => call instanceof Readable && call.closed && !call.readableEnded;

/**
 * Each of them is called once, whenever it comes. Who listens to the messages of the call gets them, or the error of a
 * call that is dead.
 */
function tellLateListeners(call: GrpcCall, stream: ClientStream | undefined): void {
  for (const method of ['on', 'addListener', 'prependListener'] as const) {
    const add = call[method].bind(call);
    call[method] = (name, listener) => {
      if (name === 'cancelled' && call.cancelled) nextTick(listener);
      if (name === 'error' && isDead(call)) nextTick(() => listener(clientGone()));
      if (name === 'close' && isDead(call)) nextTick(listener);
      const added = add(name, listener);
      if (name === 'data' || name === 'readable' || name === 'end') stream?.listen(name);
      return added;
    };
  }
}
