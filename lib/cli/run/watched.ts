/** Reads the monotonic clock that all processes of this machine share, in ms. */
export const sharedNow = (): number => Number(process.hrtime.bigint()) / 1e6;

/** The environment variable that tells the watcher what to watch when it starts: token, process group, time to kill. */
export const WATCHED = 'NEST_REDIS_LOCK_WATCHED';

/** The environment variable of a watcher that names the session in which `run` was started. */
export const INSIDE = 'NEST_REDIS_LOCK_INSIDE';

/**
 * Names the session of a command. Sessions have numbers that come again, so the LOCK_TOKEN of the command is part of
 * it.
 */
export const sessionName = (id: number, token: string): string => `${id} ${token}`;
