// Without a listener, a reader that has gone would be an uncaught exception.
process.stdout.on('error', () => undefined);

/**
 * Writes to stdout. Resolves when it is written, also when whoever reads it has gone, as "head" does.
 *
 * @returns whether somebody still reads it
 */
export function print(text: string): Promise<boolean> {
  return new Promise((resolve) => {
    process.stdout.write(text, (error) => resolve(!error));
  });
}
