import { isWellFormed, LONGEST_KEY } from '../../core/request/lock-key.js';
import { LockKeyError } from '../../errors/lock-key.error.js';
import { LockOptionsError } from '../../errors/lock-options.error.js';
import { mistake } from '../../errors/mistakes.js';
import { shown } from '../../errors/messages.js';
import type { ArgumentPath } from '../source/parameter-names.js';
import { separatorsIn, parseTemplate, type Placeholder } from './template-text.js';

/** Where a template stands, and what it can be filled with. */
export interface TemplateSite {
  /** `AccountService.withdraw` */
  readonly method: string;
  /** Finds what a placeholder begins with: `userId`, or `dto` of `<dto.id>`. */
  readonly find: (name: string) => ArgumentPath | undefined;
  /** Whether its names are those of fields that a client fills. */
  readonly areFields?: boolean;
  /** What a key can be given as. */
  readonly forms: string;
  /** Placeholders as they can be. */
  readonly examples: string;
  /** What to do where no template will do: `give a function`. */
  readonly otherwise: string;
  /** What to tell of placeholders that are not found. */
  readonly unknownNames: () => UnknownNames;
}

/** Why names are not found, in a sentence without its point, and what can be done. */
export interface UnknownNames {
  readonly what: string;
  readonly remedies: readonly string[];
}

/** A value that a key is made from. */
interface Slot extends ArgumentPath {
  /** As written: `<userId>` */
  readonly text: string;
  readonly unsafe: RegExp;
}

const PATH = /^(?:\d+|[\p{ID_Start}$_][\p{ID_Continue}$]*)(?:\.[\p{ID_Continue}$-]+)*$/u;

/** A rest parameter takes all further arguments. */
type Arguments = readonly unknown[];

/**
 * A key with placeholders, such as `account:<userId>`, that is filled from the arguments of a call. What could forge
 * another key is percent-escaped in values: `:`, and between two placeholders of one part what separates them.
 */
export class KeyTemplate {
  readonly #template: string;
  readonly #site: TemplateSite;
  readonly #fixed: readonly string[];
  readonly #slots: readonly Slot[];

  /** @throws LockOptionsError for a template that can't be filled here */
  constructor(template: unknown, site: TemplateSite) {
    if (typeof template !== 'string' || template === '') {
      throw new LockOptionsError(`The lock key of ${site.method}() must be ${site.forms}, not ${shown(template)}.`);
    }
    this.#template = template;
    this.#site = site;
    if (!isWellFormed(template)) throw this.#wrong('has half a surrogate pair in it', ['Write the whole character.']);
    const { fixed, placeholders } = parseTemplate(template);
    this.#fixed = this.#checkedFixed(fixed);
    this.#slots = this.#slotsOf(placeholders);
  }

  /** @throws LockKeyError when a value is missing, empty or an object */
  fill(args: Arguments): string {
    let key = this.#fixed[0]!;
    for (let at = 0; at < this.#slots.length; at++) key += this.#escaped(this.#slots[at]!, args) + this.#fixed[at + 1]!;
    if (key.length > LONGEST_KEY)
      throw this.#tooLong(`The key "${this.#template}" of ${this.#site.method}() comes to ${key.length}`);
    return key;
  }

  #checkedFixed(fixed: readonly string[]): readonly string[] {
    const otherwise = `If the key itself has such a character, ${this.#site.otherwise}.`;
    if (fixed.some((text) => /[<>]/.test(text)))
      throw this.#wrong('has a "<" or ">" without its partner', ['Write each placeholder as <name>.', otherwise]);
    if (fixed.some((text) => text.includes('%')))
      throw this.#wrong('has a "%", which begins an escaped character in a key', ['Write another one.', otherwise]);
    if (fixed.slice(1, -1).some((text) => separatorsIn(text).length === 0)) {
      throw this.#wrong('has two placeholders with nothing between them that keeps their values apart', [
        'Put ":" there.',
      ]);
    }
    return fixed;
  }

  #slotsOf(placeholders: readonly Placeholder[]): readonly Slot[] {
    const unknown: string[] = [];
    const slots = placeholders.flatMap(({ inside, unsafe }): Slot[] => {
      const text = `<${inside}>`;
      if (!PATH.test(inside)) {
        throw this.#wrong(`has the placeholder ${text}`, [
          `Write it as one of these: ${this.#site.examples}.`,
          `For anything else, ${this.#site.otherwise}.`,
        ]);
      }
      const [first = '', ...rest] = inside.split('.');
      const found = this.#site.find(first);
      if (found) return [{ text, unsafe, index: found.index, path: [...found.path, ...rest] }];
      unknown.push(text);
      return [];
    });
    if (unknown.length === 0) return slots;
    const { what, remedies } = this.#site.unknownNames();
    throw this.#wrong(`names ${unknown.join(' and ')}. ${what}`, remedies);
  }

  #escaped({ text, unsafe, index, path }: Slot, args: Arguments): string {
    let value: unknown = args[index];
    // Into objects only: a text has its letters as parts.
    for (const segment of path)
      value = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[segment] : undefined;
    return String(this.#checked(value, text)).replace(unsafe, percentEncoded);
  }

  #checked(value: unknown, text: string): string | number | bigint | boolean {
    switch (typeof value) {
      case 'string':
        // It may come from a client, and be of any length: escaping a megabyte would stop the process for half a
        // second.
        if (value.length > LONGEST_KEY)
          throw this.#tooLong(
            `${text} in the lock key "${this.#template}" of ${this.#site.method}() has ${value.length}`,
          );
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
        `Name the part of it that identifies the thing, e.g. <dto.id>, or ${this.#site.otherwise}.`,
      undefined,
      this.#site.areFields ? text.slice(1, -1) : undefined,
    );
  }

  #tooLong(what: string): LockKeyError {
    return new LockKeyError(`${what} characters; a key has at most ${LONGEST_KEY}.`);
  }

  #wrong(what: string, remedies: readonly string[]): LockOptionsError {
    return new LockOptionsError(
      mistake(`The lock key "${this.#template}" of ${this.#site.method}() ${what}.`, remedies),
    );
  }
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
