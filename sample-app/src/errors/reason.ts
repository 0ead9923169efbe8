/** Says in one line why something failed. A refused connection to a name with several addresses has only a code. */
export function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message || (error as NodeJS.ErrnoException).code || error.name;
}
