import { classText, ownMethod, textOf } from './class-text.js';

/** What the head of a method says. */
export interface PlainMethod {
  readonly async: boolean;
  readonly generator: boolean;
  readonly parameters: readonly string[];
  /** Whether nothing stands between the parameters and the body. */
  readonly isCompact: boolean;
}

/** The head of a method whose parameters are plain names: `async withdraw(userId, dto) {`. */
const HEAD = /^(async\s+)?(\*\s*)?([\w$]+)\s*\(([\w$,\s]*)\)(\s*)\{/;

/**
 * Reads a method whose parameters are plain names from its own text, so an app with no others loads no parser.
 * Undefined for all other methods, and for one that is not in the source of its class.
 */
export function plainMethod(prototype: object, name: string | symbol): PlainMethod | undefined {
  const text = textOf(ownMethod(prototype, name)) ?? '';
  const [, async, star, written, parameters = '', space] = HEAD.exec(text) ?? [];
  if (written !== name || !classText(prototype)?.includes(text)) return undefined;
  return {
    async: async !== undefined,
    generator: star !== undefined,
    parameters: parameters.split(',').flatMap((parameter) => parameter.trim() || []),
    isCompact: space === '',
  };
}
