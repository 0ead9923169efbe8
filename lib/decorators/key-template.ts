import { isWellFormed, LONGEST_KEY } from '../core/lock-key.js';
import { LockKeyError } from '../errors/lock-key.error.js';
import { LockOptionsError } from '../errors/lock-options.error.js';
import { mistake } from '../errors/mistakes.js';
import { shown } from '../errors/shown.js';
import type { ArgumentPath, ParameterNames } from './parameter-names.js';

/** The method a template stands on. */
export interface TemplateSite {
  /** `AccountService.withdraw` */
  readonly method: string;
  readonly names: ParameterNames;
  /** Placeholders as they can be. */
  readonly examples: string;
  /** Whether `<0>` is the first argument. */
  readonly hasPositions: boolean;
  /** For who has named another one. */
  readonly remedies: readonly string[];
}

interface Placeholder extends ArgumentPath {
  /** As written: `<userId>` */
  readonly text: string;
}

type Part = string | Placeholder;

const PLACEHOLDER = /<([^<>]*)>/;
/** What is escaped in values where the template itself has it. */
const SEPARATOR = /[^\p{L}\p{N}]/u;
const PATH = /^(?:\d+|[\p{ID_Start}$_][\p{ID_Continue}$]*)(?:\.[\p{ID_Continue}$-]+)*$/u;

/** A rest parameter takes all further arguments. */
type Arguments = readonly unknown[];

/**
 * A key with placeholders, such as `account:<userId>`, that is filled from the arguments of a call.
 * Values are percent-escaped where they hold `:` or another separator of the template, so no value can forge another key.
 */
export class KeyTemplate {
  readonly #template: string;
  readonly #site: TemplateSite;
  readonly #parts: readonly Part[];
  readonly #unsafe: RegExp;

  /** @throws LockOptionsError for a template that can't be filled from this method's parameters */
  constructor(template: unknown, site: TemplateSite) {
    if (typeof template !== 'string' || template === '') {
      throw new LockOptionsError(`The lock key of ${site.method}() must be a non-empty template, an array of them, or a function, not ${shown(template)}.`);
    }
    this.#template = template;
    this.#site = site;
    if (!isWellFormed(template)) throw this.#wrong('has half a surrogate pair in it', ['Write the whole character.']);
    this.#parts = this.#parse(template);
    this.#unsafe = unsafeCharacters(this.#parts);
  }

  /** @throws LockKeyError when a value is missing, empty or an object */
  fill(args: Arguments): string {
    let key = '';
    for (const part of this.#parts) key += typeof part === 'string' ? part : this.#escaped(part, args);
    if (key.length > LONGEST_KEY) throw this.#tooLong(`The key "${this.#template}" of ${this.#site.method}() comes to ${key.length}`);
    return key;
  }

  #parse(template: string): Part[] {
    // Splitting by a pattern with a group puts what the group caught at the odd places.
    const texts = template.split(PLACEHOLDER);
    const unknown: string[] = [];
    const parts = texts.flatMap((text, index): Part[] => {
      if (index % 2 === 1) return this.#placeholder(text, unknown);
      if (/[<>]/.test(text)) throw this.#wrong('has a "<" or ">" without its partner', ['Write each placeholder as <name>.', 'If the key itself has such a character, give a function.']);
      const isBetween = index > 0 && index < texts.length - 1;
      if (isBetween && !SEPARATOR.test(text)) throw this.#wrong('has two placeholders with nothing between them that keeps their values apart', ['Put ":" there.']);
      return text === '' ? [] : [text];
    });
    if (unknown.length > 0) throw this.#unknownNames(unknown);
    return parts;
  }

  #placeholder(inside: string, unknown: string[]): Placeholder[] {
    const text = `<${inside}>`;
    if (!PATH.test(inside)) {
      throw this.#wrong(`has the placeholder ${text}`, [`Write it as one of these: ${this.#site.examples}.`, 'For anything else, give a function.']);
    }
    const [first = '', ...rest] = inside.split('.');
    if (this.#site.hasPositions && /^\d+$/.test(first)) return [{ text, index: Number(first), path: rest }];
    const at = this.#site.names.get(first);
    if (at) return [{ text, index: at.index, path: [...at.path, ...rest] }];
    unknown.push(text);
    return [];
  }

  #escaped({ text, index, path }: Placeholder, args: Arguments): string {
    let value: unknown = args[index];
    // Into objects only: a text has its letters as parts.
    for (const segment of path) value = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[segment] : undefined;
    return String(this.#checked(value, text)).replace(this.#unsafe, percentEncoded);
  }

  #checked(value: unknown, text: string): string | number | bigint | boolean {
    switch (typeof value) {
      case 'string':
        // It may come from a client, and be of any length: escaping a megabyte would stop the process for half a second.
        if (value.length > LONGEST_KEY) throw this.#tooLong(`${text} in the lock key "${this.#template}" of ${this.#site.method}() has ${value.length}`);
        if (value !== '') return value;
        break;
      case 'number':
        if (Number.isFinite(value)) return value;
        break;
      case 'bigint':
      case 'boolean':
        return value;
    }
    throw new LockKeyError(
      `${text} in the lock key "${this.#template}" of ${this.#site.method}() is ${shown(value)}, but must be a non-empty string, a number, a bigint or a boolean. ` +
        'Name the part of it that identifies the thing, e.g. <dto.id>, or give a function.',
    );
  }

  #tooLong(what: string): LockKeyError {
    return new LockKeyError(`${what} characters; a key has at most ${LONGEST_KEY}.`);
  }

  #unknownNames(texts: readonly string[]): LockOptionsError {
    const { names, remedies } = this.#site;
    const known = names.size > 0 ? `The names there are: ${[...names.keys()].join(', ')}` : "The names of its parameters can't be read";
    return this.#wrong(`names ${texts.join(' and ')}. ${known}`, names.size > 0 ? remedies : remedies.slice(1));
  }

  #wrong(what: string, remedies: readonly string[]): LockOptionsError {
    return new LockOptionsError(mistake(`The lock key "${this.#template}" of ${this.#site.method}() ${what}.`, remedies));
  }
}

/** `:`, `%`, braces, white space and control characters always; and whatever else the template itself uses between its parts. */
function unsafeCharacters(parts: readonly Part[]): RegExp {
  const separators = parts.filter((part) => typeof part === 'string').join('').match(new RegExp(SEPARATOR, 'gu')) ?? [];
  const escaped = [...new Set(separators)].map((char) => `\\u{${char.codePointAt(0)!.toString(16)}}`).join('');
  return new RegExp(`[:%{}\\s\\p{Cc}\\p{Cs}${escaped}]`, 'gu');
}

const encodings = new Map<string, string>();

/** Of characters that a template escapes, which are few: so it is worth while to remember them. */
function percentEncoded(char: string): string {
  let encoded = encodings.get(char);
  if (encoded === undefined) encodings.set(char, (encoded = encode(char)));
  return encoded;
}

function encode(char: string): string {
  const isLoneSurrogate = /\p{Cs}/u.test(char);
  if (isLoneSurrogate) return `%u${char.charCodeAt(0).toString(16).toUpperCase()}`;
  return [...Buffer.from(char)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('');
}
