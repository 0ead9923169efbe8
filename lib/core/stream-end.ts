/** Kept outside of the values: they are the user's, and can be anything, such as a mock that has every property. */
const ends = new WeakMap<object, Promise<void>>();

/** Notes that the work of a result goes on until that promise settles, which never rejects. */
export function noteEnd<T extends object>(result: T, ended: Promise<void>): T {
  ends.set(result, ended);
  return result;
}

/** Settles when the work of a result ends. Undefined if it has ended already. */
export function endOf(result: unknown): Promise<void> | undefined {
  return ends.get(result as object);
}
