import type { Listeners } from '../../store/listeners.js';
import type { Cancellation } from '../../store/lock-store.js';
import type { HolderQueries } from './holder-queries.js';
import { wakeMessage } from './wake-message.js';

interface WakeTargets {
  readonly listeners: Listeners;
  readonly holderQueries: HolderQueries;
  /** Gives back a lock by its name in Redis. */
  readonly cancel: (name: string, lock: Omit<Cancellation, 'keys'>) => Promise<void>;
}

/** Handles a message of the wake channel. */
export function handleWakeMessage(text: string, { listeners, holderQueries, cancel }: WakeTargets): void {
  const message = wakeMessage(text);
  switch (message?.what) {
    case 'granted':
      // Nobody waits for it here any more: it goes to the next waiter.
      if (!listeners.granted(message.lock.token, message.grant)) void cancel(message.name, message.lock);
      return;
    case 'contended':
      return listeners.contended(message.token);
    case 'lost':
      return listeners.forceReleased(message.token, message.forced);
    case 'offered':
      return listeners.offered(message.token);
    case 'describe': {
      const details = listeners.describe(message.token);
      if (details) holderQueries.reply(message.question, message.channel, details);
      return;
    }
    case 'described':
      return holderQueries.replied(message.question, message.details);
  }
}
