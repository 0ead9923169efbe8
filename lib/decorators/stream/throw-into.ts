/**
 * Throws an error into an iterator. One that has no `throw()` is closed instead, as a generator closes what it
 * delegates to.
 */
export async function throwInto(iterator: AsyncIterator<unknown>, error: unknown): Promise<IteratorResult<unknown>> {
  if (iterator.throw) return iterator.throw(error);
  await iterator.return?.();
  throw error;
}
