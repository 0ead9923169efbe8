import { fieldsOf } from './fields.js';
import { LONGEST_KEY } from '../request/lock-key.js';
import { MOST_ASKED, type CallsQuestion } from './calls-question.js';

/** Reads a question of another process, without what is wrong in it: any client can publish. */
export function readCallsQuestion(about: unknown): CallsQuestion {
  const { texts, keys } = fieldsOf(about);
  return { texts: textsOf(texts), keys: textsOf(keys) };
}

function textsOf(value: unknown): string[] {
  if (!Array.isArray(value)) return [];
  return value.slice(0, MOST_ASKED).map((text) => (typeof text === 'string' ? text.slice(0, LONGEST_KEY) : ''));
}
