import type { OwnCall } from '../../core/list/calls-question.js';
import type { SentEvent, SentHotKey } from '../activity/process-report.js';
import { hottest, addTo, type KeyCounts } from '../activity/hot-keys.js';
import type { HeldRow, HotKey, KeyEvent, LossRow, WaitingRow } from '../page-snapshot.js';
import type { KnownProcess } from './process-book.js';

/** A process that has not answered for so long, in ms, is stalled or stopped. It is asked once a second. */
const SILENT_AFTER_MS = 2_000;

/** Whether it has missed more than one question: one alone may be a short pause. */
export const isSilent = ({ silentMs }: Pick<KnownProcess, 'silentMs'>): boolean => silentMs > SILENT_AFTER_MS;

type Caller = Pick<HeldRow, 'label' | 'template' | 'method' | 'process' | 'host' | 'pid' | 'traceId'>;

/** The rows of a lock: one for each key. A process that is silent may have held it longer by now. */
export function heldRows(process: KnownProcess, call: OwnCall, waitersOf: (key: string) => number): readonly HeldRow[] {
  const leaseLeftMs = call.leaseLeftMs === undefined ? null : call.leaseLeftMs - process.silentMs;
  return call.keys.map((key) => ({
    ...keyed(key),
    ...callerOf(process, call),
    mode: call.mode,
    heldMs: call.ms + process.silentMs,
    leaseLeftMs,
    fence: call.fence ?? null,
    tokenHash: null,
    waiters: waitersOf(key),
    isOverdue: call.isOverdue ?? false,
    isSilent: isSilent(process),
    isKept: false,
  }));
}

/** Whether a lock may still be held, by the last word of its process. */
export const mayBeHeld = ({ leaseLeftMs }: HeldRow): boolean => leaseLeftMs === null || leaseLeftMs > 0;

/** The rows of a call that waits: one for each key. */
export function waitingRows(process: KnownProcess, call: OwnCall): readonly WaitingRow[] {
  return call.keys.map((key) => ({
    ...keyed(key),
    ...callerOf(process, call),
    mode: call.mode,
    waitingMs: call.ms + process.silentMs,
    place: null,
    holds: call.holds ?? [],
  }));
}

export function lossRows(process: KnownProcess, event: SentEvent): readonly LossRow[] {
  return event.keys.map((key) => ({
    ...keyed(key),
    ...callerOf(process, event),
    agoMs: event.agoMs + process.silentMs,
    reason: event.detail ?? '',
    heldMs: event.heldMs ?? 0,
    fence: event.fence ?? 0,
    by: event.by ?? null,
    why: event.why ?? null,
  }));
}

export function keyEvent(process: KnownProcess, event: SentEvent): KeyEvent {
  const forced = [event.by && `by ${event.by}`, event.why].filter(Boolean).join(': ');
  const detail = [event.detail, forced].filter(Boolean).join(' ');
  return {
    ...callerOf(process, event),
    type: event.type,
    agoMs: event.agoMs + process.silentMs,
    fence: event.fence ?? null,
    waitedMs: event.waitedMs ?? null,
    heldMs: event.heldMs ?? null,
    detail: detail === '' ? null : detail,
  };
}

/** Adds up the hot keys of several processes. */
export function hotKeyRows(keys: readonly SentHotKey[], most: number): readonly HotKey[] {
  const sums = new Map<string, KeyCounts>();
  for (const { key, ...counts } of keys) addTo(sums, key, { ...counts, label: counts.label });
  return hottest(sums, most).map(([key, counts]) => ({ ...keyed(key), ...counts, label: counts.label ?? null }));
}

export const keyed = (key: string): { readonly key: string; readonly keyLength: number } => ({
  key,
  keyLength: key.length,
});

export function callerOf(
  { source, host, pid }: Pick<KnownProcess, 'source' | 'host' | 'pid'>,
  { label, template, method, traceId }: Pick<OwnCall, 'label' | 'template' | 'method' | 'traceId'>,
): Caller {
  return {
    label: label ?? null,
    template: template ?? null,
    method: method ?? null,
    process: source,
    host,
    pid,
    traceId: traceId ?? null,
  };
}
