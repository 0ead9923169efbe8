import { reason } from '../../src/errors/reason.js';

export interface Running<Report> {
  /** What the parent is told once this process is ready. */
  readonly report: Report;
  stop(): Promise<void>;
}

export type Message<Report> = { readonly ready: Report } | { readonly failed: string };

/**
 * Runs a process that the sample needs beside the app. It stops on SIGINT and SIGTERM, and when the process that
 * started it is gone, however that went: the channel between the two closes even after a SIGKILL.
 */
export async function runProcess<Report>(start: () => Promise<Running<Report>>): Promise<void> {
  const starting = start();
  let isStopping = false;

  const stop = async (): Promise<void> => {
    if (isStopping) return;
    isStopping = true;
    await starting.then((running) => running.stop()).catch(fail);
    process.exit(0);
  };
  process.on('SIGINT', stop).on('SIGTERM', stop).once('disconnect', stop);

  const hasLostItsParent = process.send !== undefined && !process.connected;
  if (hasLostItsParent) return stop();

  await starting.then(({ report }) => tellParent({ ready: report }), fail);
}

/** Tells the process that started this one why it can't go on, and ends it. */
export async function fail(error: unknown): Promise<never> {
  if (process.connected) await tellParent({ failed: reason(error) });
  else console.error(reason(error));
  process.exit(1);
}

/** Tells the process that started this one how its start went. */
export function tellParent<Report>(message: Message<Report>): Promise<void> {
  return new Promise((resolve) => {
    if (!process.connected) return resolve();
    process.send?.(message, () => resolve());
  });
}
