import type * as Acorn from 'acorn';
import { mistake } from '../../errors/mistakes.js';
import { thisFile } from '../../errors/stack-files.js';

let acorn: typeof Acorn | undefined;

/**
 * Parses the text of a module; returns undefined when it can't. The first call loads the parser, which takes 8 ms at
 * the start of an app; few apps need it.
 */
export function parsed(text: string): Acorn.Program | undefined {
  const { parse } = (acorn ??= loadedParser());
  try {
    return parse(text, { ecmaVersion: 'latest', sourceType: 'module', checkPrivateFields: false });
  } catch {
    return undefined;
  }
}

function loadedParser(): typeof Acorn {
  try {
    return 'require' in globalThis ? ownOrBundledParser() : bundledParser();
  } catch (cause) {
    const what = 'nest-redis-lock needs the package "acorn" to read the source of a class, and can\'t load it.';
    const remedies = [
      'If nest-redis-lock is in the bundle of the app, make it an external package, or install "acorn" 8 beside the bundle.',
      'Otherwise install the dependencies of nest-redis-lock.',
    ];
    throw new Error(mistake(what, remedies), { cause });
  }
}

/**
 * A global `require`, which an app may make, looks from the folder of the app: for another version, or for none. In a
 * bundle of the app, the call may not be the global one.
 */
function ownOrBundledParser(): typeof Acorn {
  try {
    return ownParser();
  } catch {
    return bundledParser();
  }
}

/** In CommonJS, the app is one bundle, or Jest compiles this package. Some bundlers see the call and add the parser. */
function bundledParser(): typeof Acorn {
  // eslint-disable-next-line @typescript-eslint/no-require-imports
  return typeof require === 'function' ? recent(require('acorn') as typeof Acorn) : ownParser();
}

const ownParser = (): typeof Acorn =>
  recent(process.getBuiltinModule('node:module').createRequire(thisFile())('acorn') as typeof Acorn);

/** An older one, which other packages may have brought beside a bundle, reads for ever. */
function recent(parser: typeof Acorn): typeof Acorn {
  if (Number.parseInt(parser.version) >= 8) return parser;
  throw new Error(`acorn ${parser.version} is too old.`);
}
