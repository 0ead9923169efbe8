import { json } from '../../errors/messages.js';

/** Writes a value as one line of JSON, without a character that a terminal acts on. */
export const jsonLine = (value: unknown): string => `${json(value)}\n`;
