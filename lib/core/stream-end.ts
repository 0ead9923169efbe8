const END = Symbol('nest-redis-lock:end');

/** Notes on a result that it goes on working until that promise settles, which never rejects. */
export function noteEnd<T extends object>(result: T, ended: Promise<void>): T {
  return Object.defineProperty(result, END, { value: ended });
}

/** When the work of a result ends; undefined if it has ended already. */
export function endOf(result: unknown): Promise<void> | undefined {
  return (result as { [END]?: Promise<void> } | null | undefined)?.[END];
}
