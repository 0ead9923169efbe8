/** Not noted on the values themselves: they are the user's, and may be anything, such as a mock that answers to every property. */
const ends = new WeakMap<object, Promise<void>>();

/** Notes on a result that it goes on working until that promise settles, which never rejects. */
export function noteEnd<T extends object>(result: T, ended: Promise<void>): T {
  ends.set(result, ended);
  return result;
}

/** When the work of a result ends; undefined if it has ended already. */
export function endOf(result: unknown): Promise<void> | undefined {
  return ends.get(result as object);
}
