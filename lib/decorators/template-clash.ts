import { PARTER, takeApart, type TemplateText } from './template-text.js';

/** How two templates can make one key. */
export interface Clash {
  /** A key that both can make. */
  readonly key: string;
  /** Whether one template only says in words what can be a value of the other: `account:house` is the key of `account:<id>` for "house". */
  readonly isFixedText: boolean;
}

/** Whether two templates can make one key without being meant to. Templates of one shape are: `order:<id>` and `order:<kind>` name one thing. */
export function clashOf(one: string, other: string): Clash | undefined {
  const [parts, others] = [partsOf(one), partsOf(other)];
  if (parts.length !== others.length) return undefined;
  const key = commonKey(takeApart(one), takeApart(other));
  if (key === undefined) return undefined;
  const differing = parts.filter((part, at) => part !== others[at] && hasValue(part) && hasValue(others[at]!));
  const isSameShape = parts.join(PARTER) === others.join(PARTER);
  return isSameShape ? undefined : { key, isFixedText: differing.length === 0 };
}

/** What stands for any placeholder. */
const VALUE = '<>';

/** The template without the names in it. */
export function shapeOf(template: string): string {
  return takeApart(template).fixed.join(VALUE);
}

/** No value has a ":", so two templates make one key only if they do so part by part. */
function partsOf(template: string): readonly string[] {
  return shapeOf(template).split(PARTER);
}

const hasValue = (part: string): boolean => part.includes(VALUE);

/** A character of a fixed text, or a value, by what it may not have. */
type Token = string | RegExp;

/** Where a reader of a key stands in a template: before a token, or inside of a value that has begun. */
interface Place {
  readonly at: number;
  readonly isInside: boolean;
}

/** A character that no value escapes, for all that no template has. */
const ANY = '1';

/**
 * The shortest key that both make: it reads both templates at once, in all ways. Characters that are escaped need no look, as the same key with a plain
 * one instead can be made as well.
 */
function commonKey(one: TemplateText, other: TemplateText): string | undefined {
  const [first, second] = [tokensOf(one), tokensOf(other)];
  const alphabet = new Set([ANY, ...[...first, ...second].filter((token) => typeof token === 'string')]);
  const open = [{ key: '', place: START, otherPlace: START }];
  const seen = new Set<string>();
  for (const { key, place, otherPlace } of open) {
    if (isEnd(first, place) && isEnd(second, otherPlace)) return key;
    for (const char of alphabet) {
      for (const next of placesAfter(first, place, char)) {
        for (const otherNext of placesAfter(second, otherPlace, char)) {
          const step = JSON.stringify([next, otherNext]);
          if (!seen.has(step)) open.push({ key: key + char, place: next, otherPlace: otherNext });
          seen.add(step);
        }
      }
    }
  }
  return undefined;
}

const START: Place = { at: 0, isInside: false };

function tokensOf({ fixed, placeholders }: TemplateText): readonly Token[] {
  return fixed.flatMap((text, at): Token[] => [...text, ...(placeholders[at] ? [placeholders[at].unsafe] : [])]);
}

function isEnd(tokens: readonly Token[], { at, isInside }: Place): boolean {
  return at + (isInside ? 1 : 0) === tokens.length;
}

function placesAfter(tokens: readonly Token[], { at, isInside }: Place, char: string): readonly Place[] {
  const token = tokens[at];
  const behind = isInside ? placesAfter(tokens, { at: at + 1, isInside: false }, char) : [];
  if (typeof token === 'string') return token === char ? [{ at: at + 1, isInside: false }] : [];
  return token && char.search(token) < 0 ? [{ at, isInside: true }, ...behind] : behind;
}
