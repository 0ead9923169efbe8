import { Readable } from 'node:stream';
import { StreamableFile } from '@nestjs/common';

/** Closes a stream that a handler has returned for nobody, as Nest does: it may hold a file open. */
export function closeUnsent(value: unknown): void {
  try {
    const body = streamOf(value);
    // What has not begun may fail still, and nobody listens.
    if (body instanceof Readable) body.on('error', nothing).destroy();
    else if (body instanceof ReadableStream && !body.locked) body.cancel().catch(nothing);
  } catch {
    // A Proxy of the app may throw at any access.
  }
}

function streamOf(value: unknown): unknown {
  if (value instanceof StreamableFile) return value.getStream();
  return value instanceof Response ? value.body : value;
}

function nothing(): void {}
