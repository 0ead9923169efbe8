import { type CustomTransportStrategy, type MessageHandler, Server, Transport } from '@nestjs/microservices';
import { EventEmitter } from 'node:events';
import { defaultIfEmpty, fromEvent, lastValueFrom, type Observable, Subscription, takeUntil, tap } from 'rxjs';

/** A call as `@grpc/grpc-js` gives it to the server. */
export class GrpcCall extends EventEmitter {
  cancelled = false;
  /** Whether the server has begun to read what the handler has returned. */
  isRead = false;
  /** Whether the server has done all that it does for the call. */
  hasEnded = false;

  cancel(): void {
    this.cancelled = true;
    this.emit('cancelled', 'cancelled');
  }
}

/** Reads what a handler has returned; settles when it reads no more. */
type Reader = (result: Observable<unknown>, call: GrpcCall) => Promise<unknown>;

/** How Nest reads, without a look at calls that were cancelled before. */
export const READERS: Record<string, Reader> = {
  /** `writeObservableToGrpc()` of Nest 11. */
  'whose result is streamed': (result, call) =>
    new Promise((resolve) => {
      const reading = new Subscription();
      const cancel = () => {
        reading.unsubscribe();
        resolve(undefined);
      };
      call.on('cancelled', cancel);
      reading.add(() => call.off('cancelled', cancel));
      call.isRead = true;
      reading.add(result.subscribe({ error: resolve, complete: () => resolve(undefined) }));
    }),

  /** `createRequestStreamMethod()` of Nest 11 and 12. */
  'with a streamed request': (result, call) => {
    const cancelled = fromEvent(call, 'cancelled');
    const isRead = tap({ subscribe: () => (call.isRead = true) });
    return lastValueFrom(result.pipe(isRead, takeUntil(cancelled), defaultIfEmpty(undefined)));
  },
};

/** A server that reads as Nest's own for gRPC does, which needs packages that are no dependencies here. */
export class GrpcLikeServer extends Server implements CustomTransportStrategy {
  override readonly transportId = Transport.GRPC;
  readonly #read: Reader;

  constructor(read: Reader) {
    super();
    this.#read = read;
  }

  override addHandler(pattern: { readonly rpc: string }, handler: MessageHandler): void {
    this.messageHandlers.set(pattern.rpc, handler);
  }

  listen(callback: () => void): void {
    callback();
  }

  close(): void {}

  on(): void {}

  unwrap<T>(): T {
    throw new Error('There is nothing in it.');
  }

  receive(method: string, call: GrpcCall): void {
    void this.#handle(this.messageHandlers.get(method)!, call).then(() => (call.hasEnded = true));
  }

  async #handle(handler: MessageHandler, call: GrpcCall): Promise<void> {
    const args = [{}, {}, call] as unknown as Parameters<MessageHandler>;
    await this.#read(this.transformToObservable(await handler(...args)), call);
  }
}
