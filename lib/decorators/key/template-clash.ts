import { KEY_SEPARATOR, parseTemplate, type TemplateText } from './template-text.js';

/** How two templates can make the same key. */
export interface Clash {
  /** A key that both can make. */
  readonly key: string;
  /** Whether one template spells out a value of the other: `account:house` is the key of `account:<id>` for "house". */
  readonly isFixedText: boolean;
}

/** A template, prepared for comparison. */
export interface ReadTemplate {
  /** The texts between the ":". No value has a ":", so two templates can make the same key only part by part. */
  readonly parts: readonly string[];
  readonly tokens: readonly Token[];
}

/** Prepares a template once, for all comparisons. */
export function readTemplate(template: string): ReadTemplate {
  return { parts: shapeOf(template).split(KEY_SEPARATOR), tokens: tokensOf(parseTemplate(template)) };
}

/**
 * Tells whether two templates can make the same key although they are not meant to. Templates of one shape are meant
 * to: `order:<id>` and `order:<kind>` name the same thing.
 */
export function clashOf(one: ReadTemplate, other: ReadTemplate): Clash | undefined {
  const [parts, others] = [one.parts, other.parts];
  if (parts.length !== others.length || !parts.every((part, at) => mayMeet(part, others[at]!))) return undefined;
  const isSameShape = parts.every((part, at) => part === others[at]);
  const key = isSameShape ? undefined : commonKey(one.tokens, other.tokens);
  const differing = parts.filter((part, at) => part !== others[at] && hasValue(part) && hasValue(others[at]!));
  return key === undefined ? undefined : { key, isFixedText: differing.length === 0 };
}

/** Stands for any placeholder. */
const VALUE = '<>';

/** Returns the template without the names in it. */
export function shapeOf(template: string): string {
  return template.replace(/<[^<>]*>/g, VALUE);
}

const hasValue = (part: string): boolean => part.includes(VALUE);

/**
 * Tells whether the texts before the first value and after the last one let two parts be equal. For most pairs they
 * don't, which spares the search.
 */
function mayMeet(part: string, other: string): boolean {
  const [texts, others] = [part.split(VALUE), other.split(VALUE)];
  const [head, otherHead, tail, otherTail] = [texts[0]!, others[0]!, texts.at(-1)!, others.at(-1)!];
  return (
    (head.startsWith(otherHead) || otherHead.startsWith(head)) && (tail.endsWith(otherTail) || otherTail.endsWith(tail))
  );
}

/** A character of a fixed text, or a value: the pattern of the characters that it can't contain. */
type Token = string | RegExp;

/** A position in a template while a key is read: before a token, or inside a value that has begun. */
interface Position {
  readonly at: number;
  readonly isInside: boolean;
}

/** A character that no value escapes. It stands for all characters that neither template has. */
const ANY = '1';

/**
 * Finds the shortest key that both templates make: reads both at once, in all ways. It skips characters that are
 * escaped, because the same key with a plain character instead exists as well.
 */
function commonKey(first: readonly Token[], second: readonly Token[]): string | undefined {
  const alphabet = new Set([ANY, ...[...first, ...second].filter((token) => typeof token === 'string')]);
  const open = [{ key: '', position: START, otherPosition: START }];
  const seen = new Set<number>();
  for (const { key, position, otherPosition } of open) {
    if (isEnd(first, position) && isEnd(second, otherPosition)) return key;
    for (const char of alphabet) {
      for (const next of positionsAfter(first, position, char)) {
        for (const otherNext of positionsAfter(second, otherPosition, char)) {
          const step = numberOf(next) * 2 * (second.length + 1) + numberOf(otherNext);
          if (!seen.has(step)) open.push({ key: key + char, position: next, otherPosition: otherNext });
          seen.add(step);
        }
      }
    }
  }
  return undefined;
}

const START: Position = { at: 0, isInside: false };

const numberOf = ({ at, isInside }: Position): number => 2 * at + (isInside ? 1 : 0);

function tokensOf({ fixed, placeholders }: TemplateText): readonly Token[] {
  return fixed.flatMap((text, at): Token[] => [...text, ...(placeholders[at] ? [placeholders[at].unsafe] : [])]);
}

function isEnd(tokens: readonly Token[], { at, isInside }: Position): boolean {
  return at + (isInside ? 1 : 0) === tokens.length;
}

function positionsAfter(tokens: readonly Token[], { at, isInside }: Position, char: string): readonly Position[] {
  const token = tokens[at];
  const behind = isInside ? positionsAfter(tokens, { at: at + 1, isInside: false }, char) : [];
  if (typeof token === 'string') return token === char ? [{ at: at + 1, isInside: false }] : [];
  return token && char.search(token) < 0 ? [{ at, isInside: true }, ...behind] : behind;
}
