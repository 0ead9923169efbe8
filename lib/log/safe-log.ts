/** Writes lines to the log of the app. */
export interface Log {
  log(line: string): void;
  warn(line: string): void;
  error(line: string, stack?: string): void;
  debug(line: string): void;
}

/**
 * Makes a log that never throws, whatever the app's own logger does. Lines are written in the middle of something: of
 * the end of a call, of a timer that ends all calls. A line that the logger does not take goes to stderr.
 */
export function safeLog(log: Log): Log {
  const writer =
    (level: keyof Log) =>
    (...line: [string, stack?: string]): void => {
      try {
        log[level](...line);
      } catch {
        process.stderr.write(`[RedisLock] ${line.join('\n')}\n`);
      }
    };
  return { log: writer('log'), warn: writer('warn'), error: writer('error'), debug: writer('debug') };
}
