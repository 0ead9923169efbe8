/**
 * Gives an error a stack that begins with its name, its message and its detail: whatever prints it (a console, a
 * logger, a test runner) tells both. The text is made when somebody reads it, as most errors are handled unread.
 *
 * @param below the frames of this function and of those it calls are left out
 */
export function setLazyStack(
  error: Error & { readonly detail: string },
  below: NonNullable<Parameters<typeof Error.captureStackTrace>[1]>,
): void {
  const trace: { stack?: string } = {};
  Error.captureStackTrace(trace, below);
  let told: string | undefined;
  const stack = (): string => {
    const { name, message, detail } = error;
    const frames = String(trace.stack ?? '')
      .split('\n')
      .slice(1);
    return [`${name}: ${message}`, ...(detail === message ? [] : [detail]), ...frames].join('\n');
  };
  // To define it anew would have the old one written.
  delete error.stack;
  Object.defineProperty(error, 'stack', {
    get: () => (told ??= stack()),
    set: (value: string) => (told = value),
    configurable: true,
  });
}

/**
 * Lets errors be made without a trace until `again()`: of an error that gets its own by `setLazyStack` the first one
 * would only cost, half of what it takes to make one, which counts where thousands of callers time out at once.
 */
export function withoutTraces(): { again(): void } {
  const limit = Error.stackTraceLimit;
  // Where it can't be set, as with frozen intrinsics, this does nothing.
  Reflect.set(Error, 'stackTraceLimit', 0);
  return { again: () => Reflect.set(Error, 'stackTraceLimit', limit) };
}
