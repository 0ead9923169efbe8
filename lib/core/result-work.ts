/** What goes on with a result when the call that has returned it is over. */
interface Work {
  /** Settles when the work ends. Never rejects. */
  readonly ended: Promise<void>;
  /** Releases its lock, because nobody will read the result. */
  readonly leave: () => void;
}

/** Kept outside of the values: they are the user's, and can be anything, such as a mock that has every property. */
const works = new WeakMap<object, Work>();

/** Notes what goes on with a result. */
export function noteWork<T extends object>(result: T, work: Work): T {
  works.set(result, work);
  return result;
}

/** Settles when the work of a result ends. Undefined if it has ended already. */
export function endOf(result: unknown): Promise<void> | undefined {
  return works.get(result as object)?.ended;
}

/** Releases the lock of a result that nobody will read. The result itself is the app's, which may keep it. */
export function leaveUnread(result: unknown): void {
  works.get(result as object)?.leave();
}
