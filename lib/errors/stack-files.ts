/** How many frames to read: those of this library, and of what calls decorators, come first. */
const FRAMES = 50;
/** The path of a file may have brackets, as that of `Program Files (x86)` has. */
const FRAME = /(?:\(|at (?:async )?)((?:file:\/\/|\/|[A-Za-z]:[\\/])(?!.*<anonymous>).+|(?!node:)[^()]+?):\d+:\d+\)?$/;

/** Returns the files of the running functions, the innermost first, without those of Node. */
export function filesOfStack(): readonly string[] {
  const { stackTraceLimit } = Error;
  // The limit stays where it can't be set, as with frozen intrinsics. `prepareStackTrace` may make anything of a stack.
  Reflect.set(Error, 'stackTraceLimit', FRAMES);
  const { stack } = new Error();
  Reflect.set(Error, 'stackTraceLimit', stackTraceLimit);
  return String(stack)
    .split('\n')
    .flatMap((line) => FRAME.exec(line)?.[1]?.replace(/^file:\/\//, '') ?? []);
}
