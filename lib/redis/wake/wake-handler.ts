import type { Listeners } from '../../store/listeners.js';
import type { Cancellation } from '../../store/lock-store.js';
import type { KeyNames } from '../wire/key-names.js';
import type { OtherProcesses } from './other-processes.js';
import { askedQuestion } from './process-queries.js';
import { wakeMessage } from './wake-message.js';

interface WakeTargets {
  readonly listeners: Listeners;
  readonly others: OtherProcesses;
  readonly names: Pick<KeyNames, 'keyOf'>;
  /** Gives back a lock. */
  readonly cancel: (lock: Cancellation) => Promise<void>;
}

/** Handles a message of the wake channel. */
export function handleWakeMessage(text: string, targets: WakeTargets): void {
  const { listeners, others } = targets;
  const message = wakeMessage(text);
  switch (message?.what) {
    case 'granted':
      // Nobody waits for it here any more: it goes to the next waiter.
      if (!listeners.granted(message.lock.token, message.grant)) giveBack(message.name, message.lock, targets);
      return;
    case 'contended':
      return listeners.contended(message.token);
    case 'lost':
      return listeners.forceReleased(message.token, message.forced);
    case 'offered':
      return listeners.offered(message.token);
    case 'describe': {
      const details = listeners.describe(message.token);
      if (details) others.holderQueries.reply(message.question, message.channel, details);
      return;
    }
    case 'ask':
      return answer(message.question, message.asked, targets);
    case 'elsewhere':
      return others.questions.repliedElsewhere(message.question);
    case 'reply':
      return others.questions.replied(message.question, message.text);
  }
}

/** Gives back a lock by its name in Redis. Ignores a name that no lock can have, because every client can publish. */
function giveBack(name: string, lock: Omit<Cancellation, 'keys'>, { names, cancel }: WakeTargets): void {
  const key = names.keyOf(name);
  if (key !== undefined) void cancel({ ...lock, keys: [key] });
}

/** Answers a question of another process, unless it is for nobody here. Answers go only to wake channels. */
function answer(id: string, json: string, { listeners, others }: WakeTargets): void {
  const question = askedQuestion(json);
  if (!question?.replyTo.startsWith(others.channelPrefix) || !listeners.sources.includes(question.to)) return;
  if (question.database !== undefined && question.database !== others.database)
    return others.processQueries.answerElsewhere(id, question.replyTo);
  others.processQueries.answer(id, question.replyTo, listeners.answer(question.to, question));
}
