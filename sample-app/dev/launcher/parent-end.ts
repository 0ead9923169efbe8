/**
 * Resolves when the process that started this one has ended, which the kernel does not announce. npm ends on SIGTERM
 * without telling the script that it runs.
 */
export function parentEnd(): Promise<void> {
  const parent = process.ppid;
  return new Promise((resolve) => {
    const look = setInterval(() => {
      if (process.ppid === parent) return;
      clearInterval(look);
      resolve();
    }, 250).unref();
  });
}
