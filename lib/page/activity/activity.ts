import { now } from '../../clock/deadline.js';
import type { LockEvent } from '../../core/lock/lock-event.js';
import { HeldTraces } from './held-traces.js';
import { HotKeys } from './hot-keys.js';
import { KeyHistory, type KeptEvent } from './key-history.js';
import { LabelTimes } from './label-times.js';
import { LeaseMargins } from './lease-margins.js';
import { LossLog } from './loss-log.js';
import { RollingSum } from './rolling-sum.js';

type EventOf<Type extends LockEvent['type']> = Extract<LockEvent, { readonly type: Type }>;

/** What is kept of an event. */
export interface HistoryEvent extends KeptEvent {
  readonly type: LockEvent['type'];
  readonly keys: readonly string[];
  readonly label: string | undefined;
  readonly template: string | undefined;
  readonly method: string | undefined;
  readonly traceId?: string | undefined;
  readonly fence?: number | undefined;
  readonly waitedMs?: number | undefined;
  readonly heldMs?: number | undefined;
  readonly detail?: string | undefined;
  /** By whom and why a lock was released by force. */
  readonly by?: string | undefined;
  readonly why?: string | undefined;
}

/** Events after which somebody looks up their key. */
const NOTABLE = new Set<LockEvent['type']>(['lost', 'forced', 'timeout', 'unavailable', 'overdue']);

/** Keeps what the locks of this process do, in bounded memory, from the events of its `LockService`. */
export class Activity {
  readonly traces = new HeldTraces();
  readonly times = new LabelTimes();
  readonly hotKeys = new HotKeys();
  readonly history = new KeyHistory<HistoryEvent>();
  readonly losses = new LossLog<HistoryEvent>();
  readonly margins = new LeaseMargins();
  /** The locks acquired in the last ten seconds. */
  readonly acquired = new RollingSum(1_000, 10);

  /** The call that has waited and whose outcome follows. */
  #waited: number | undefined;

  /** Takes the next event. */
  readonly next = (event: LockEvent): void => {
    const traceId = this.#traceIdOf(event);
    this.#follow(event);
    const kept = this.#kept(event, traceId ?? this.#traceIdOf(event));
    if (!kept) return;
    const isNotable = NOTABLE.has(event.type);
    for (const key of kept.keys) this.history.add(key, kept, isNotable);
    if (event.type === 'lost') this.losses.add(kept.detail!, kept);
  };

  /** Follows which locks are held, and counts. */
  #follow(event: LockEvent): void {
    switch (event.type) {
      case 'waited':
        this.#waited = event.id;
        return;
      case 'acquired':
        this.traces.acquired(event);
        this.acquired.add(1, now());
        this.#slotOf(event).wait.add(event.waitedMs);
        for (const key of event.keys) this.#count(key, event).acquired++;
        return;
      case 'timeout':
        this.#slotOf(event).timeouts++;
        for (const key of event.keys) this.#count(key, event).timeouts++;
        return;
      case 'unavailable':
        this.#slotOf(event).unavailable++;
        return;
      case 'aborted':
        this.#slotOf(event).aborted++;
        return;
      case 'renewed':
        return this.margins.add(event.marginMs, event.leaseMs, now());
      case 'lost':
        this.#slotOf(event).lost++;
        return this.#ended(event);
      case 'released':
        return this.#ended(event);
    }
  }

  #ended(event: EventOf<'released' | 'lost'>): void {
    this.traces.ended(event.id);
    this.#slotOf(event).hold.add(event.heldMs);
  }

  /** Returns the counts of a key, after the wait for it was added. */
  #count(key: string, { id, label, template, waitedMs }: EventOf<'acquired' | 'timeout'>): ReturnType<HotKeys['of']> {
    const counts = this.hotKeys.of(key, now());
    if (id === this.#waited) counts.waitedMs += waitedMs;
    counts.label = label ?? template;
    return counts;
  }

  /** The trace of a lock, while it is held. */
  #traceIdOf(event: LockEvent): string | undefined {
    return 'id' in event ? this.traces.of(event.id) : undefined;
  }

  #slotOf({ label, template }: LockEvent): ReturnType<LabelTimes['at']> {
    return this.times.at(label ?? template, Date.now());
  }

  /** What to keep of an event for the history of its keys; undefined for one that says nothing there. */
  #kept(event: LockEvent, traceId: string | undefined): HistoryEvent | undefined {
    const { type, label, template, method } = event;
    if (type === 'waited' || type === 'renewed') return undefined;
    const kept = { at: now(), type, keys: event.keys, label, template, method, traceId };
    return { ...kept, ...factsOf(event) };
  }
}

function factsOf(event: LockEvent): Partial<HistoryEvent> {
  switch (event.type) {
    case 'acquired':
      return { waitedMs: event.waitedMs, fence: event.fence };
    case 'released':
      return { heldMs: event.heldMs, fence: event.fence };
    case 'lost': {
      const { heldMs, fence, reason, forced } = event;
      return { heldMs, fence, detail: forced ? 'forced' : reason, by: forced?.by, why: forced?.reason };
    }
    case 'timeout': {
      const { waitedMs, reason, holder } = event;
      return { waitedMs, detail: holder === undefined ? reason : `${reason} by ${holder}` };
    }
    case 'overdue':
      return { heldMs: event.heldMs, fence: event.fence };
    case 'unavailable':
    case 'aborted':
      return { waitedMs: event.waitedMs };
    case 'forced':
      return { by: event.by, why: event.reason };
    default:
      return {};
  }
}
