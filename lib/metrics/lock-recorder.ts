import type { Observer } from 'rxjs';
import type { HeldLockEvent, LockCallEvent, LockEvent } from '../core/lock/lock-event.js';
import { ShuttingDownError } from '../core/lock/shutting-down.error.js';
import { logger } from '../log/logger.js';
import type { BoundedNames } from './bounded-names.js';
import { Gauge } from './gauge.js';
import type { LockAttributes, LockInstruments } from './lock-instruments.js';

/** The losses after which two callers may have been inside. The others happen on purpose, or to nobody. */
const LOSSES = ['expired', 'taken'];

type EventOf<Type extends LockEvent['type']> = Extract<LockEvent, { readonly type: Type }>;
type ToldOfCall = Pick<LockCallEvent, 'label' | 'template' | 'mode'>;

/** Records the events of a service. Never throws into the call that an event is about. */
export class LockRecorder implements Observer<LockEvent> {
  readonly #instruments: LockInstruments;
  readonly #labels: BoundedNames;
  readonly #module: string | undefined;
  readonly #held: Gauge;
  readonly #waiting: Gauge;
  /** What has been held: the losses of each are counted from 0. */
  readonly #known = new Set<string>();
  /** The call whose wait is over, and whose outcome follows. */
  #waited: number | undefined;
  #hasFailed = false;

  /** @param module the name of the module, unless it is the default one */
  constructor(instruments: LockInstruments, labels: BoundedNames, module: string | undefined) {
    this.#instruments = instruments;
    this.#labels = labels;
    this.#module = module;
    this.#held = new Gauge(instruments.held);
    this.#waiting = new Gauge(instruments.waiting);
  }

  next(event: LockEvent): void {
    try {
      this.#record(event);
    } catch (error) {
      this.error(error);
    }
  }

  /** Logs the first error of the library for metrics. */
  error(error: unknown): void {
    if (!this.#hasFailed) logger.error('Locks can not be measured.', (error as Partial<Error> | undefined)?.stack);
    this.#hasFailed = true;
  }

  /** Forgets what the gauges still count: the app has shut down. */
  complete(): void {
    this.#held.clear();
    this.#waiting.clear();
  }

  #record(event: LockEvent): void {
    switch (event.type) {
      case 'queued':
        return this.#waiting.enter(event.id, this.#attributesOf(event));
      case 'waited':
        this.#waited = event.id;
        return void this.#waiting.leave(event.id);
      case 'acquired':
        if (!event.nested) this.#beginHold(event);
        return this.#endCall(event);
      case 'timeout':
        return this.#endCall(event, 'busy');
      case 'unavailable':
        return this.#endCall(event, event.error instanceof ShuttingDownError ? 'shutdown' : event.type);
      case 'aborted':
        return this.#endCall(event, event.type);
      case 'renewed':
        return this.#renewed(event);
      case 'released':
        return this.#endHold(event);
      case 'lost':
        return this.#endHold(event, event.reason);
    }
  }

  /**
   * Leaves out what is left of the few seconds that a lock has at first when it was waited for: it is always little.
   */
  #renewed(event: EventOf<'renewed'>): void {
    if (event.leaseMs < event.remainingMs) return;
    this.#instruments.leaseMargin.record(event.marginMs / 1000, this.#attributesOf(event));
  }

  #endCall(event: LockCallEvent, errorType?: string): void {
    const queued = event.id === this.#waited;
    const attributes = { ...this.#attributesOf(event), queued, ...(errorType && { errorType }) };
    this.#instruments.acquireDuration.record(event.waitedMs / 1000, attributes);
  }

  #beginHold(event: EventOf<'acquired'>): void {
    const attributes = this.#attributesOf(event);
    this.#held.enter(event.id, attributes);
    const name = `${attributes.mode} ${attributes.label}`;
    if (this.#known.has(name)) return;
    this.#known.add(name);
    for (const errorType of LOSSES) this.#instruments.lost.add(0, { ...attributes, errorType });
  }

  /** A nested lock holds nothing of its own: it never entered. */
  #endHold(event: HeldLockEvent, errorType?: string): void {
    const attributes = this.#held.leave(event.id);
    if (!attributes) return;
    this.#instruments.holdDuration.record(event.heldMs / 1000, { ...attributes, ...(errorType && { errorType }) });
    if (errorType && LOSSES.includes(errorType)) this.#instruments.lost.add(1, { ...attributes, errorType });
  }

  #attributesOf({ label, template, mode }: ToldOfCall): LockAttributes {
    return {
      label: this.#labels.bounded(label ?? template),
      mode,
      ...(this.#module !== undefined && { module: this.#module }),
    };
  }
}
