/** Our own frames, and those of what calls decorators, come first. */
const FRAMES = 50;
const FRAME = /(?:\(|at (?:async )?)(?!node:)([^()]+?):\d+:\d+\)?$/;

/** The files of those who are being called at the moment, the innermost first, without Node's own. */
export function filesOfStack(): readonly string[] {
  const { stackTraceLimit } = Error;
  // Where it can't be set, as with frozen intrinsics, the limit stays; and whoever prepares stacks may make anything of
  // them.
  Reflect.set(Error, 'stackTraceLimit', FRAMES);
  const { stack } = new Error();
  Reflect.set(Error, 'stackTraceLimit', stackTraceLimit);
  return String(stack)
    .split('\n')
    .flatMap((line) => FRAME.exec(line)?.[1]?.replace(/^file:\/\//, '') ?? []);
}
