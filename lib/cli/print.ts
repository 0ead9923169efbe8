let failure: Error | undefined;

// Without a listener, a reader that has gone would be an uncaught exception.
process.stdout.on('error', () => undefined);

/** Why something was not written, for example because the disk is full. A reader that has gone is no failure. */
export const printFailure = (): Error | undefined => failure;

/**
 * Writes to stdout. Resolves when it is written, also when whoever reads it has gone, as "head" does.
 *
 * @returns whether somebody still reads it
 */
export function print(text: string): Promise<boolean> {
  return new Promise((resolve) => {
    process.stdout.write(text, (error) => {
      if (error && (error as NodeJS.ErrnoException).code !== 'EPIPE') failure ??= error;
      resolve(!error);
    });
  });
}
