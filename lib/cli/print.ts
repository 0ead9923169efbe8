/** Writes to stdout. Resolves when it is written, also when whoever reads it has gone, as "head" does. */
export function print(text: string): Promise<void> {
  return new Promise((resolve) => {
    process.stdout.once('error', () => resolve());
    process.stdout.write(text, () => resolve());
  });
}
