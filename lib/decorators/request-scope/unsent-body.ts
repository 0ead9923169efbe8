import { closeUnread } from '../../core/returned-stream.js';
import { isFile } from '../stream/stream-kind.js';

/** Closes a stream that a handler has returned for nobody, as Nest does. */
export function closeUnsent(value: unknown): void {
  closeUnread(isFile(value) ? value.getStream() : value);
}
