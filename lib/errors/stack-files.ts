import { isAbsolute, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** How many frames to read: those of this library, and of what calls decorators, come first. */
const FRAMES = 50;
/** The path of a file may have brackets, as that of `Program Files (x86)` has. */
const FRAME = /(?:\(|at (?:async )?)((?:file:\/\/|\/|[A-Za-z]:[\\/])(?!.*<anonymous>).+|(?!node:)[^()]+?):\d+:\d+\)?$/;

/** Returns the paths of the files of the running functions, the innermost first, without those of Node. */
export function filesOfStack(): readonly string[] {
  const files = filesIn(String(stack(FRAMES)));
  return files.some(isAbsolute) ? files : filesIn(plainStack(FRAMES));
}

/** Returns the stack as Node writes it, also where a tool shortens the stacks of the process. */
export function plainStack(frames: number): string {
  const { prepareStackTrace } = Error as { readonly prepareStackTrace?: unknown };
  Reflect.set(Error, 'prepareStackTrace', undefined);
  try {
    return String(stack(frames));
  } finally {
    Reflect.set(Error, 'prepareStackTrace', prepareStackTrace);
  }
}

/** `prepareStackTrace` may make anything of a stack. */
function stack(frames: number): unknown {
  const { stackTraceLimit } = Error;
  // The limit stays where it can't be set, as with frozen intrinsics.
  Reflect.set(Error, 'stackTraceLimit', frames);
  try {
    return new Error().stack;
  } finally {
    Reflect.set(Error, 'stackTraceLimit', stackTraceLimit);
  }
}

const filesIn = (written: string): readonly string[] =>
  written.split('\n').flatMap((line) => pathOf(FRAME.exec(line)?.[1]) ?? []);

/**
 * Returns a file of this package, or at least of the app, for `createRequire`. Not `import.meta.url`, which is a syntax
 * error when Jest compiles the package to CommonJS.
 */
export function thisFile(): string {
  return filesOfStack().find(isAbsolute) ?? join(process.cwd(), 'app.js');
}

/** Node writes the URL of a module, but a path for CommonJS and where there is a source map. */
function pathOf(file: string | undefined): string | undefined {
  if (!file?.startsWith('file://')) return file;
  try {
    return fileURLToPath(file);
  } catch {
    return undefined;
  }
}
