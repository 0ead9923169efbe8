import { Observable } from 'rxjs';
import type { Readable } from 'node:stream';

/** What the client of a gRPC call streams, as Nest gives it to a method with `@GrpcStreamMethod`. */
interface RequestStream extends Observable<unknown> {
  /** Makes Nest send what it has received so far, in the next turn of the event loop. */
  drainBuffer(): void;
}

export function isRequestStream(value: unknown): value is RequestStream {
  return value instanceof Observable && typeof (value as Partial<RequestStream>).drainBuffer === 'function';
}

/**
 * Reads no more of a call until somebody subscribes to its stream, so that nothing is lost or kept in memory before.
 */
export function readLate(stream: RequestStream, call: Readable): Observable<unknown> {
  call.pause();
  let isRead = false;
  return new Observable((subscriber) => {
    const reading = stream.subscribe(subscriber);
    if (!isRead) {
      isRead = true;
      stream.drainBuffer();
      // Behind what Nest has received before: it sends that in a "setImmediate" of its own.
      setImmediate(() => call.resume());
    }
    return reading;
  });
}
