import { classSource, methodSource } from '../source/class-source.js';
import type { UnknownNames } from './key-template.js';
import { localNames, type ParameterNames } from '../source/parameter-names.js';
import { plainMethod } from '../source/plain-method.js';
import { filesOfStack } from '../../errors/stack-files.js';

/** What can be done where a build has renamed the parameters. */
export const IN_EVERY_BUILD: readonly string[] = [
  'Name positions, which every build keeps: <0> is the first parameter, <1.id> the "id" of the second.',
  'Give a function of the arguments.',
];

/** The length of the names that minifiers give, at most. */
const SHORT = 2;

/** Explains a method whose parameters a minifier has renamed; undefined when the class does not look minified. */
export function minifiedMethod(prototype: object, names: ParameterNames): UnknownNames | undefined {
  const given = [...names.keys()];
  if (!looksMinified(prototype, given)) return undefined;
  const file = definingFile();
  const where = file ? `; the class is in ${file}` : '';
  return {
    what: `This class looks minified: use <0>. In this build its parameters are called ${given.join(', ')}${where}`,
    remedies: [
      ...IN_EVERY_BUILD,
      'Let the build keep names: minifyIdentifiers: false in esbuild, mangle: false in Terser and SWC.',
      'If it is not minified, give its parameters longer names.',
    ],
  };
}

/**
 * Tells whether a minifier may have renamed the parameters of a method. A template that names one of them as it is
 * called now, such as `<a>`, may have been written for another. A longer name in the class shows that it has not.
 */
export function mayBeRenamed(prototype: object, method: string | symbol, names: ParameterNames): boolean {
  const given = [...names.keys()];
  if (given.length < 2 || given.some((name) => name.length > 1)) return false;
  return isCompact(prototype, method) || localNames(prototype).every((name) => name.length <= SHORT);
}

/** Whether nothing stands between the parameters and the body, where people and compilers write a space. */
function isCompact(prototype: object, method: string | symbol): boolean {
  const plain = plainMethod(prototype, method);
  if (plain) return plain.isCompact;
  const source = methodSource(prototype, method);
  return source !== undefined && classSource(prototype)?.text[source.value.body.start - 1] === ')';
}

/**
 * Short names alone are not enough, because people write `id` and `to`, too: the rest of the class has to look
 * minified.
 */
function looksMinified(prototype: object, names: readonly string[]): boolean {
  if (names.length === 0 || names.some((name) => name.length > SHORT)) return false;
  return (
    names.every((name) => name.length === 1) || prototype.constructor.name.length <= SHORT || isOnOneLine(prototype)
  );
}

function isOnOneLine(prototype: object): boolean {
  return classSource(prototype)?.text.includes('\n') === false;
}

/** The file of `filesOfStack`: as it is written, or in the package. */
const FIRST_FILE = /(?:errors[\\/]stack-files|dist[\\/]nest(?:-redis-lock)?)\.\w+$/;
const OF_PACKAGE = /[\\/]node_modules[\\/]/;

/**
 * Returns the file of the class that is being defined: the innermost file of the stack that is neither of this library
 * nor of a package. With source maps (`node --enable-source-maps`) it is the source file. Undefined when the stack
 * doesn't show it.
 */
function definingFile(): string | undefined {
  const [own = '', ...files] = filesOfStack();
  // In an app's own bundle everything is one file.
  if (!FIRST_FILE.test(own)) return own || undefined;
  const ours = own.replace(FIRST_FILE, '');
  const others = files.filter((file) => !file.startsWith(ours) && !OF_PACKAGE.test(file));
  // A helper of the compiler calls the decorator; it has no source file.
  return others.slice(0, 2).find((file) => /\.[cm]?tsx?$/.test(file)) ?? others[0];
}
