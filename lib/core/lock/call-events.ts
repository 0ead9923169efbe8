import { now } from '../../clock/deadline.js';
import { modeOf } from '../request/held-mode.js';
import type { LockRequest, Refusal } from '../request/lock-request.js';
import { noteWait } from '../waiting/wait-notes.js';
import { failureOf } from './call-failure.js';
import type { CallNews, LockCallEvent, LockEvent } from './lock-event.js';
import type { LockEvents } from './lock-events.js';
import { Lock } from './lock.js';

/** Where to emit events, and what they tell besides the call. */
export interface CallEventsOf {
  readonly events: LockEvents;
  /** Lists the keys that the running async context holds. */
  readonly heldKeys: () => readonly string[];
}

/** Emits how a call for a lock goes. */
export async function withCallEvents(
  { events, heldKeys }: CallEventsOf,
  request: LockRequest,
  acquire: (request: LockRequest) => Promise<Lock | Refusal>,
): Promise<Lock | Refusal> {
  const startedAt = now();
  const id = events.nextCall();
  /** The subscription that came last when the wait began: later ones hear nothing of the wait. */
  let queuedFor: number | undefined;
  const emit = (news: CallNews, waitedMs: number, latest?: number): void =>
    events.emit(callEvent(request, news, { id, waitedMs }), latest);
  const emitEnd = (news: CallNews | undefined): void => {
    const waitedMs = now() - startedAt;
    if (queuedFor !== undefined) emit({ type: 'waited' }, waitedMs, queuedFor);
    if (news) emit(news, waitedMs);
  };
  request.onWait = ({ holder, ahead }) => {
    if (queuedFor !== undefined) return;
    queuedFor = events.latest;
    const holding = heldKeys();
    noteWait(request, { id, holding });
    emit({ type: 'queued', waitMs: request.waitMs, holder, ahead, holding }, now() - startedAt);
  };
  let result: Lock | Refusal;
  try {
    result = await acquire(request);
  } catch (error) {
    emitEnd(failureNews(error, request));
    throw error;
  }
  if (result instanceof Lock) {
    const { fence, isNested } = result;
    const { latest } = events;
    const remainingMs = result.remaining();
    const traceparent = result.trace?.traceparent;
    emitEnd({ type: 'acquired', fence, nested: isNested, remainingMs, traceparent });
    result.noteAcquired({ id, latest });
  } else {
    const { reason, waitMs, holder, ahead } = result;
    emitEnd({ type: 'timeout', reason, waitMs, holder, ahead });
  }
  return result;
}

/** Makes an event of a call. Without a spread: V8 takes microseconds to spread into an object of this size. */
function callEvent(
  { keys, label, site, sharing }: LockRequest,
  news: CallNews,
  { id, waitedMs }: Pick<LockCallEvent, 'id' | 'waitedMs'>,
): LockEvent {
  const { type } = news;
  const mode = modeOf(sharing);
  return Object.assign({ type, id, keys, label, method: site?.method, template: site?.template, mode, waitedMs }, news);
}

/** What is said of a call that failed; nothing, if the call itself was wrong. */
function failureNews(error: unknown, request: LockRequest): CallNews | undefined {
  const failure = failureOf(error, request);
  if (failure === 'aborted') return { type: failure, reason: error };
  return failure === 'mistake' ? undefined : { type: 'unavailable', error };
}
