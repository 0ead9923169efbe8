import type { Sharing } from '../../store/lock-store.js';
import { checkedTraceparent } from '../../store/traceparent.js';
import { fieldsOf } from './fields.js';
import { LONGEST_KEY } from '../request/lock-key.js';
import {
  LONGEST_NAME,
  MOST_NAMED,
  type ListAnswer,
  type ListQuestion,
  type OwnHolder,
  type OwnKey,
  type OwnWaiters,
  type Place,
} from './list-question.js';

const SHARINGS = /^(?:exclusive|read|permits:[1-9]\d{0,6})$/;

/** Reads a question of another process. Undefined for what is none, because any client can publish. */
export function readQuestion(about: unknown): ListQuestion | undefined {
  const { match, olderThanMs, limit, keys, after } = fieldsOf(about);
  if (typeof match !== 'string' || match.length > LONGEST_KEY || !isCount(limit) || limit < 1 || !isNumber(olderThanMs))
    return undefined;
  return {
    match,
    olderThanMs,
    limit,
    keys: keys === undefined ? undefined : listOf(keys, (key) => (isKey(key) ? key : undefined)),
    after: after === undefined ? undefined : placeOf(after),
  };
}

/** Reads the answer of another process, without what is wrong in it. Undefined for what is none. */
export function readAnswer(answer: unknown): ListAnswer | undefined {
  const { keys, total, next } = fieldsOf(answer);
  if (!Array.isArray(keys) || !isCount(total)) return undefined;
  return { keys: listOf(keys, keyOf), total, next: placeOf(next) };
}

function keyOf(value: unknown): OwnKey | undefined {
  const { key, sharing, holders, holderCount, waiters, waiterCount } = fieldsOf(value);
  if (!isKey(key) || !isSharing(sharing) || !isCount(holderCount) || !isCount(waiterCount)) return undefined;
  return {
    key,
    sharing,
    holders: listOf(holders, holderOf).slice(0, MOST_NAMED),
    holderCount,
    waiters: listOf(waiters, waitersOf).slice(0, MOST_NAMED),
    waiterCount,
  };
}

function holderOf(value: unknown): OwnHolder | undefined {
  const { token, fence, traceparent, remainingMs } = fieldsOf(value);
  const caller = callerOf(value);
  if (!caller || !isCount(fence) || !isNumber(remainingMs)) return undefined;
  return { ...caller, token: nameOf(token), fence, traceparent: checkedTraceparent(traceparent), remainingMs };
}

function waitersOf(value: unknown): OwnWaiters | undefined {
  const { sharing, callers, traceparent } = fieldsOf(value);
  const caller = callerOf(value);
  if (!caller || !isSharing(sharing) || !isCount(callers)) return undefined;
  return { ...caller, sharing, callers, traceparent: checkedTraceparent(traceparent) };
}

function callerOf(value: unknown): Omit<OwnHolder, 'fence' | 'remainingMs' | 'traceparent' | 'token'> | undefined {
  const { label, method, template, since, ageMs } = fieldsOf(value);
  if (!isCount(since) || since > LATEST || !isNumber(ageMs)) return undefined;
  return { label: nameOf(label), method: nameOf(method), template: nameOf(template), since, ageMs };
}

/** The largest time that a `Date` can have. */
const LATEST = 8.64e15;

function placeOf(value: unknown): Place | undefined {
  const [since, key] = Array.isArray(value) ? (value as unknown[]) : [];
  return isNumber(since) && typeof key === 'string' ? [since, key] : undefined;
}

function listOf<T>(value: unknown, read: (item: unknown) => T | undefined): T[] {
  return Array.isArray(value) ? value.map(read).filter((item) => item !== undefined) : [];
}

const isKey = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= LONGEST_KEY;

const isSharing = (value: unknown): value is Sharing => typeof value === 'string' && SHARINGS.test(value);

const isNumber = (value: unknown): value is number => typeof value === 'number' && value >= 0 && value < Infinity;

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

const nameOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value.slice(0, LONGEST_NAME) : undefined;
