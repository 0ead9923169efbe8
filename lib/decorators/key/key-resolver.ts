import 'reflect-metadata';
import { type ExecutionContext, HttpException } from '@nestjs/common';
import type { LockKey } from '../../core/request/lock-key.js';
import { LockKeyError } from '../../errors/lock-key.error.js';
import { isLockError } from '../../errors/lock.error.js';
import { shownError } from '../../errors/messages.js';
import { Mistakes } from '../../errors/mistakes.js';
import { KeyTemplate, type TemplateContext, type UnknownNames } from './key-template.js';
import { mayBeRenamed, minifiedMethod } from './minified.js';
import { mayBeNumbered, mayBeNumberedElsewhere, numberedNames } from './numbered.js';
import { parameterNames, type ArgumentPath, type ParameterNames } from '../source/parameter-names.js';

/** The metadata in which Nest keeps what `@Param('userId')` and the like say about a handler's parameters. */
const ROUTE_ARGUMENTS = '__routeArguments__';

/**
 * Returns the function that makes the key of a call.
 *
 * @throws LockOptionsError when the template does not fit the method
 */
export function keyResolver(
  key: unknown,
  prototype: object,
  method: string | symbol,
  site: string,
): (args: unknown[]) => LockKey {
  if (typeof key === 'function') return (args) => calledKey(key as KeyFunction, args, site);
  const own = parameterNames(prototype, method);
  const ofRoute = new Map([...routeNames(prototype, method)].filter((named) => !mayBeNumberedElsewhere(named, own)));
  const names = new Map([...ofRoute, ...own]);
  const mayMeanAnother = (name: string) => mayBeNumbered(name, own) || mayBeRenamed(prototype, method, own);
  return filledKey(key, {
    method: site,
    find: (name) => {
      if (/^\d+$/.test(name)) return { index: Number(name), path: [] };
      return own.has(name) && mayMeanAnother(name) ? ofRoute.get(name) : names.get(name);
    },
    ...OF_DECORATOR,
    examples: 'a name, <userId>; a path into it, <dto.id>; a position, <0> or <0.id>',
    unknownNames: (unknown) =>
      minifiedMethod(prototype, own) ?? numberedNames(unknown, own) ?? unknownParameters([...names.keys()]),
  });
}

const OF_DECORATOR = { forms: 'a non-empty template, an array of them, or a function', otherwise: 'give a function' };

/** What compilers call the parameters of an async method that they make a generator of: `from_1`, `_a`, `_0`. */
const OF_OLD_TARGET = /^_[a-z\d]$|_\d+$/;

function unknownParameters(known: readonly string[]): UnknownNames {
  const isOfOldTarget = known.some((name) => OF_OLD_TARGET.test(name));
  return {
    what: known.length > 0 ? `Known names: ${known.join(', ')}` : "The names of its parameters can't be read",
    remedies: [
      ...(known.length > 0 ? ['Name one of them.'] : []),
      'Name a position, such as <0> or <0.id>.',
      'Give a function of the arguments.',
      ...(isOfOldTarget
        ? ['Compile for ES2018 or later: for older targets, compilers rename parameters of async methods.']
        : []),
    ],
  };
}

/** The parts of a request that a key can be made from. */
const PARTS_OF_REQUEST = ['params', 'query', 'body', 'headers'];

const OF_REQUEST: Omit<TemplateContext, 'method'> = {
  areFields: true,
  find: (name) => (PARTS_OF_REQUEST.includes(name) ? { index: 0, path: [name] } : undefined),
  ...OF_DECORATOR,
  examples: '<params.id>, <query.id>, <body.account.id>, <headers.x-id>',
  unknownNames: () => ({
    what: `Known names: ${PARTS_OF_REQUEST.join(', ')}`,
    remedies: ['Name a part of one of them, such as <params.id>.', 'Give a function of the ExecutionContext.'],
  }),
};

/**
 * Returns the function that makes the key of an HTTP request.
 *
 * @throws LockOptionsError for a bad template
 */
export function requestKeyResolver(key: unknown, site: string): (context: ExecutionContext) => LockKey {
  if (typeof key === 'function') return (context) => calledKey(key as KeyFunction, [context], site);
  const lowerCase = (template: unknown): unknown =>
    typeof template === 'string' ? template.replace(/<headers\.[^<>]*>/g, (header) => header.toLowerCase()) : template;
  const fill = filledKey(Array.isArray(key) ? byPosition(key).map(lowerCase) : lowerCase(key), {
    ...OF_REQUEST,
    method: site,
  });
  return (context) => fill([context.switchToHttp().getRequest()]);
}

function filledKey(key: unknown, site: TemplateContext): (args: unknown[]) => LockKey {
  if (!Array.isArray(key) || key.length === 0) {
    const template = new KeyTemplate(key, site);
    return (args) => template.fill(args);
  }
  const mistakes = new Mistakes();
  const templates = byPosition(key).flatMap((one) => mistakes.try(() => new KeyTemplate(one, site)) ?? []);
  if (mistakes.error) throw mistakes.error;
  return (args) => templates.map((template) => template.fill(args));
}

/** An array of a subclass may iterate over something else. */
const byPosition = (array: readonly unknown[]): readonly unknown[] =>
  Array.from({ length: array.length }, (_none, at) => array[at]);

type KeyFunction = (...args: unknown[]) => LockKey;

function calledKey(key: KeyFunction, args: unknown[], site: string): LockKey {
  try {
    const made = key(...args);
    // A promise will be refused as a key; without this, its rejection would be unhandled.
    if (made instanceof Promise) made.catch(() => undefined);
    return made;
  } catch (error) {
    if (error instanceof HttpException || isLockError(error)) throw error;
    throw new LockKeyError(`The function that makes the lock key of ${site}() threw ${shownError(error)}.`, error);
  }
}

/** Returns the names that `@Param('userId') id`, `@Query('q') text` … give to parameters, where each is unique. */
function routeNames(prototype: object, method: string | symbol): ParameterNames {
  const routeArguments = (Reflect.getMetadata(ROUTE_ARGUMENTS, prototype.constructor, method) ?? {}) as Record<
    string,
    { index: number; data?: unknown }
  >;
  const named = Object.values(routeArguments).filter(({ data }) => typeof data === 'string');
  const unique = named.filter(({ data }) => named.filter((other) => other.data === data).length === 1);
  return new Map(unique.map(({ index, data }): [string, ArgumentPath] => [data as string, { index, path: [] }]));
}
