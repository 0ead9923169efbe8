import { short } from './figures.mjs';

/** What the contender `byHand` is, for the reader of a table. */
export const BY_HAND =
  '“By hand, with the same promises” is a lock that keeps what ours does while nothing fails, and nothing more: a fence, ' +
  'a queue whose next waiter is looked for and notified, a deadline for each call, renewal, an end by its own clock, and ' +
  'nested calls.';

/** What the contender `byHandLocal` is. */
export const BY_HAND_LOCAL =
  '“By hand, with the same promises” is a queue of callers in front of one lock in Redis, with a fence for each caller, ' +
  'a deadline for each wait, renewal, an end by its own clock, and nested calls.';

const listed = (values) => values.map(short).join(' / ');

/*
 * Why figures miss their targets, one sentence or two for each kind of figure. What can be had on a machine is what the
 * row "by hand, with the same promises" gets in the same run.
 */

export const whyUncontended = (byHand, fenced) =>
  `By hand, with the same promises, a free lock takes ${listed(byHand)} (same core / split), and ${listed(fenced)} with ` +
  'no more than a fence and a look at the queue. What `withLock` takes above that is for what can fail: a second copy of ' +
  'a command, a lost connection, a caller that has gone. `@WithLock` adds the key of its template.';

export const whyThroughput = (name, callers, byHand) =>
  `By hand, with the same promises, ${callers.join(' / ')} callers reach ${listed(byHand)} (${name}). ` +
  'Where that misses a target, a fence, a queue and renewal cost more than is left for them. ' +
  'The rest is what a call of ours has besides: options, events, its turn among the callers of the process, ' +
  'and a lock object, which also are most of its garbage.';

export const whyHotKey = (promises, byHand) =>
  `A queue of promises, without Redis, takes ${listed(promises)} µs (same core / split, 32 callers), and ` +
  `${listed(byHand)} µs by hand, with the same promises. ` +
  'The rest is the look at the end of the lease, the fence, and the lock object of the next caller; ' +
  'commands come from hand-offs that let other processes in every few ms.';

export const whyHandOff = (placings, byHand, published) =>
  `By hand, with the same promises, two processes with a caller each take ${listed(byHand)} (${placings.join(' / ')}), and ` +
  `${listed(published)} without a fence and without a look whether the waiter lives. ` +
  'On one core, all that the releaser does behind its reply delays the waiter. A figure whose range reaches the target misses it ' +
  'by less than its own spread.';

export const whyWatchdog =
  'A lock keeps the object that its caller has, its lease, its request, and its places in the watchdog and among the open leases.';

export const whyQuorum = (byHand) =>
  `By hand, with the same promises, five nodes take ${listed(byHand)} (same core / split). ` +
  'Ours does more for each of the ten commands: it remembers which node granted, for releases that overtake late grants; ' +
  'keeps the clocks and fences of the nodes together; and knows of copies that a lost connection leaves behind. ' +
  'Six processes on one core pay for each of these several times, because none finds its code in the cache.';

export const whyBoot = (byHandMs) =>
  `To read the text of the library without running any of it takes ${short(byHandMs)} ms. ` +
  'The rest is spent on decorated classes, scripts, and providers that look at the app for mistakes. The targets are of a ' +
  'machine on which 141 separate files took 69 ms; on this one they take 102 to 129 ms, so that 30 ms there are 44 to 56 here ' +
  '([decision 16](decisions/0016-the-package-is-one-bundle.md)).';
