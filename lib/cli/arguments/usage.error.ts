/** Says what is wrong with the command line, and what to type. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
