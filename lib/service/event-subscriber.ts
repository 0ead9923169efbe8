import { config, Observable, type Subscriber } from 'rxjs';
import { atRoot } from '../clock/root-context.js';
import type { LockEvent } from '../core/lock/lock-event.js';
import type { LockEvents, LockEventSubscriber } from '../core/lock/lock-events.js';

/** Makes an Observable of the events. */
export function observableOf(events: LockEvents): Observable<LockEvent> {
  return new Observable((subscriber) => {
    const listener = eventSubscriber(subscriber);
    events.add(listener);
    return () => events.delete(listener);
  });
}

/**
 * Makes a subscriber that never throws, because nobody who listens may keep a lock from its caller, or from being
 * released. RxJS catches what most subscribers throw, but not what a `Subscriber` of one's own does.
 */
function eventSubscriber(subscriber: Subscriber<LockEvent>): LockEventSubscriber {
  return {
    next: (event) => tell(() => subscriber.next(event)),
    complete: () => tell(() => subscriber.complete()),
  };
}

function tell(call: () => void): void {
  try {
    call();
  } catch (error) {
    atRoot(() => setTimeout(() => reportUnhandled(error)));
  }
}

/** Does what RxJS does. */
function reportUnhandled(error: unknown): void {
  if (!config.onUnhandledError) throw error;
  config.onUnhandledError(error);
}
