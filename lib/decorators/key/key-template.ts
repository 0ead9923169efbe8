import { isWellFormed, LONGEST_KEY } from '../../core/request/lock-key.js';
import { LockKeyError } from '../../errors/lock-key.error.js';
import { LockOptionsError } from '../../errors/lock-options.error.js';
import { mistake } from '../../errors/mistakes.js';
import { shown } from '../../errors/messages.js';
import type { ArgumentPath } from '../source/parameter-names.js';
import { separatorsIn, parseTemplate, type Placeholder } from './template-text.js';

/** The method that a template stands on, and what can fill the template. */
export interface TemplateContext {
  /** `AccountService.withdraw` */
  readonly method: string;
  /** Finds the first name of a placeholder: `userId`, or `dto` of `<dto.id>`. */
  readonly find: (name: string) => ArgumentPath | undefined;
  /** Whether its names are fields that a client fills. */
  readonly areFields?: boolean;
  /** The forms that a key may have, for errors. */
  readonly forms: string;
  /** Examples of placeholders, for errors. */
  readonly examples: string;
  /** What to do where no template fits: `give a function`. */
  readonly otherwise: string;
  /** Explains placeholders whose first names are not found. */
  readonly unknownNames: (unknown: readonly string[]) => UnknownNames;
}

/** Why names are not found, as a sentence without its full stop, and what can be done. */
export interface UnknownNames {
  readonly what: string;
  readonly remedies: readonly string[];
}

/** A placeholder, bound to an argument. */
interface BoundPlaceholder extends ArgumentPath {
  /** As written: `<userId>` */
  readonly text: string;
  readonly unsafe: RegExp;
}

const PATH = /^(?:\d+|[\p{ID_Start}$_][\p{ID_Continue}$]*)(?:\.[\p{ID_Continue}$-]+)*$/u;

/** A placeholder of another language: `${userId}`, which JavaScript fills only between backquotes, or `#{userId}`. */
const FOREIGN_PLACEHOLDER = /[$#]\{([^{}]*)\}/;

/** A rest parameter takes all further arguments. */
type Arguments = readonly unknown[];

/**
 * A key with placeholders, such as `account:<userId>`, that is filled from the arguments of a call. Characters that
 * could forge another key are percent-escaped in values: `:`, and whatever separates two placeholders of the same part.
 */
export class KeyTemplate {
  readonly #template: string;
  readonly #context: TemplateContext;
  readonly #fixed: readonly string[];
  readonly #placeholders: readonly BoundPlaceholder[];

  /** @throws LockOptionsError for a template that can't be filled here */
  constructor(template: unknown, context: TemplateContext) {
    if (typeof template !== 'string' || template === '') {
      throw new LockOptionsError(
        `The lock key of ${context.method}() must be ${context.forms}, not ${shown(template)}.`,
      );
    }
    this.#template = template;
    this.#context = context;
    if (!isWellFormed(template)) throw this.#wrong('has half a surrogate pair in it', ['Write the whole character.']);
    const { fixed, placeholders } = parseTemplate(template);
    this.#fixed = this.#checkedFixed(fixed);
    this.#placeholders = this.#bind(placeholders);
  }

  /**
   * Makes the key of a call.
   *
   * @throws LockKeyError when a value is missing, empty or an object
   */
  fill(args: Arguments): string {
    let key = this.#fixed[0]!;
    for (let at = 0; at < this.#placeholders.length; at++)
      key += this.#escaped(this.#placeholders[at]!, args) + this.#fixed[at + 1]!;
    if (key.length > LONGEST_KEY)
      throw this.#tooLong(`The key "${this.#template}" of ${this.#context.method}() comes to ${key.length}`);
    return key;
  }

  #checkedFixed(fixed: readonly string[]): readonly string[] {
    const otherwise = `If the key itself has such a character, ${this.#context.otherwise}.`;
    if (fixed.some((text) => /[<>]/.test(text)))
      throw this.#wrong('has a "<" or ">" without its partner', ['Write each placeholder as <name>.', otherwise]);
    for (const text of fixed) {
      const [written, inside] = FOREIGN_PLACEHOLDER.exec(text) ?? [];
      if (inside === undefined) continue;
      throw this.#wrong(`has "${written}", which no value replaces`, [
        PATH.test(inside) ? `Write <${inside}>.` : `Write it as one of these: ${this.#context.examples}.`,
        `For anything else, ${this.#context.otherwise}.`,
      ]);
    }
    if (fixed.some((text) => text.includes('%')))
      throw this.#wrong('has a "%", which begins an escaped character in a key', ['Use another character.', otherwise]);
    if (fixed.slice(1, -1).some((text) => separatorsIn(text).length === 0)) {
      throw this.#wrong('has two placeholders with nothing between them that keeps their values apart', [
        'Put ":" there.',
      ]);
    }
    return fixed;
  }

  #bind(placeholders: readonly Placeholder[]): readonly BoundPlaceholder[] {
    const unknown: string[] = [];
    const names: string[] = [];
    const bound = placeholders.flatMap(({ inside, unsafe }): BoundPlaceholder[] => {
      const text = `<${inside}>`;
      if (!PATH.test(inside)) {
        throw this.#wrong(`has the placeholder ${text}`, [
          `Write it as one of these: ${this.#context.examples}.`,
          `For anything else, ${this.#context.otherwise}.`,
        ]);
      }
      const [first = '', ...rest] = inside.split('.');
      const found = this.#context.find(first);
      if (found) return [{ text, unsafe, index: found.index, path: [...found.path, ...rest] }];
      unknown.push(text);
      names.push(first);
      return [];
    });
    if (unknown.length === 0) return bound;
    const { what, remedies } = this.#context.unknownNames(names);
    throw this.#wrong(`names ${unknown.join(' and ')}. ${what}`, remedies);
  }

  #escaped({ text, unsafe, index, path }: BoundPlaceholder, args: Arguments): string {
    let value: unknown = args[index];
    // Paths go into objects only: a string has its letters as properties.
    for (const segment of path)
      value = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[segment] : undefined;
    return String(this.#checked(value, text)).replace(unsafe, percentEncoded);
  }

  #checked(value: unknown, text: string): string | number | bigint | boolean {
    switch (typeof value) {
      case 'string':
        // A value may come from a client and be of any length. Escaping a megabyte would block the process for half a
        // second.
        if (value.length > LONGEST_KEY)
          throw this.#tooLong(
            `${text} in the lock key "${this.#template}" of ${this.#context.method}() has ${value.length}`,
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
      `${text} in the lock key "${this.#template}" of ${this.#context.method}() is ${shown(value)}, ` +
        'but must be a non-empty string, a number, a bigint or a boolean. ' +
        (value === undefined && !text.includes('.')
          ? 'The default value of a parameter is set after the key is made. '
          : '') +
        `Name the part of it that identifies the thing, e.g. <dto.id>, or ${this.#context.otherwise}.`,
      undefined,
      this.#context.areFields ? text.slice(1, -1) : undefined,
    );
  }

  #tooLong(what: string): LockKeyError {
    return new LockKeyError(`${what} characters; a key has at most ${LONGEST_KEY}.`);
  }

  #wrong(what: string, remedies: readonly string[]): LockOptionsError {
    return new LockOptionsError(
      mistake(`The lock key "${this.#template}" of ${this.#context.method}() ${what}.`, remedies),
    );
  }
}

const encodings = new Map<string, string>();

/** Encodes a character that a template escapes. There are few of these, so each encoding is remembered. */
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
