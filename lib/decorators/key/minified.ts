import { classSource } from '../source/class-source.js';
import type { UnknownNames } from './key-template.js';
import type { ParameterNames } from '../source/parameter-names.js';
import { filesOfStack } from '../../errors/stack-files.js';

/** As long as the names are that minifiers give, at most. */
const SHORT = 2;

/** What to tell of a method whose parameters a minifier has renamed; undefined, when it does not look so. */
export function minifiedMethod(prototype: object, names: ParameterNames): UnknownNames | undefined {
  if (!looksMinified(prototype, [...names.keys()])) return undefined;
  const file = definingFile();
  return {
    what: `This class looks minified: use <0>. In this build its parameters are called ${[...names.keys()].join(', ')}${file ? `; the class is in ${file}` : ''}`,
    remedies: [
      'Name positions, which every build keeps: <0> is the first parameter, <1.id> the "id" of the second.',
      'Give a function of the arguments.',
      'Let the build keep names: minifyIdentifiers: false in esbuild, mangle: false in Terser and SWC.',
    ],
  };
}

/**
 * People write `id` and `to` as well, so two letters are not enough where the rest of the class looks written by hand.
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

const FIRST_FILE = /errors[\\/]stack-files\.\w+$/;
const OF_PACKAGE = /[\\/]node_modules[\\/]/;

/**
 * The file of the class that is being defined, by the stack: the innermost that is neither ours nor of a package. With
 * source maps (`node --enable-source-maps`) the one it was compiled from. Undefined when none can be told.
 */
function definingFile(): string | undefined {
  const [own = '', ...files] = filesOfStack();
  // In a bundle all is one file.
  if (!FIRST_FILE.test(own)) return own || undefined;
  const ours = own.replace(FIRST_FILE, '');
  const others = files.filter((file) => !file.startsWith(ours) && !OF_PACKAGE.test(file));
  // A helper of the compiler calls the decorator, and has no source of its own.
  return others.slice(0, 2).find((file) => /\.[cm]?tsx?$/.test(file)) ?? others[0];
}
