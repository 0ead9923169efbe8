import { KEY_SEPARATOR, parseTemplate, type TemplateText } from './template-text.js';

/** How two templates can make one key. */
export interface Clash {
  /** A key that both can make. */
  readonly key: string;
  /**
   * Whether one template only says in words what can be a value of the other: `account:house` is the key of
   * `account:<id>` for "house".
   */
  readonly isFixedText: boolean;
}

/** A template, as its keys are compared. */
export interface ReadTemplate {
  /** What is between the ":"; no value has one, so two templates make one key only if they do so part by part. */
  readonly parts: readonly string[];
  readonly tokens: readonly Token[];
}

/** Reads a template once, for all that it is compared with. */
export function readTemplate(template: string): ReadTemplate {
  return { parts: shapeOf(template).split(KEY_SEPARATOR), tokens: tokensOf(parseTemplate(template)) };
}

/**
 * Whether two templates can make one key without being meant to. Templates of one shape are: `order:<id>` and
 * `order:<kind>` name one thing.
 */
export function clashOf(one: ReadTemplate, other: ReadTemplate): Clash | undefined {
  const [parts, others] = [one.parts, other.parts];
  if (parts.length !== others.length || !parts.every((part, at) => mayMeet(part, others[at]!))) return undefined;
  const isSameShape = parts.every((part, at) => part === others[at]);
  const key = isSameShape ? undefined : commonKey(one.tokens, other.tokens);
  const differing = parts.filter((part, at) => part !== others[at] && hasValue(part) && hasValue(others[at]!));
  return key === undefined ? undefined : { key, isFixedText: differing.length === 0 };
}

/** What stands for any placeholder. */
const VALUE = '<>';

/** The template without the names in it. */
export function shapeOf(template: string): string {
  return template.replace(/<[^<>]*>/g, VALUE);
}

const hasValue = (part: string): boolean => part.includes(VALUE);

/**
 * Whether what stands before the first value of a part, and behind its last one, does not keep it from ever being the
 * other. Most never are.
 */
function mayMeet(part: string, other: string): boolean {
  const [texts, others] = [part.split(VALUE), other.split(VALUE)];
  const [head, otherHead, tail, otherTail] = [texts[0]!, others[0]!, texts.at(-1)!, others.at(-1)!];
  return (
    (head.startsWith(otherHead) || otherHead.startsWith(head)) && (tail.endsWith(otherTail) || otherTail.endsWith(tail))
  );
}

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
 * The shortest key that both make: it reads both templates at once, in all ways. Characters that are escaped need no
 * look, as the same key with a plain one instead can be made as well.
 */
function commonKey(first: readonly Token[], second: readonly Token[]): string | undefined {
  const alphabet = new Set([ANY, ...[...first, ...second].filter((token) => typeof token === 'string')]);
  const open = [{ key: '', place: START, otherPlace: START }];
  const seen = new Set<number>();
  for (const { key, place, otherPlace } of open) {
    if (isEnd(first, place) && isEnd(second, otherPlace)) return key;
    for (const char of alphabet) {
      for (const next of placesAfter(first, place, char)) {
        for (const otherNext of placesAfter(second, otherPlace, char)) {
          const step = numberOf(next) * 2 * (second.length + 1) + numberOf(otherNext);
          if (!seen.has(step)) open.push({ key: key + char, place: next, otherPlace: otherNext });
          seen.add(step);
        }
      }
    }
  }
  return undefined;
}

const START: Place = { at: 0, isInside: false };

const numberOf = ({ at, isInside }: Place): number => 2 * at + (isInside ? 1 : 0);

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
