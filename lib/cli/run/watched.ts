/** Reads the monotonic clock that all processes of this machine share, in ms. */
export const sharedNow = (): number => Number(process.hrtime.bigint()) / 1e6;

/** The environment variable that tells the watcher what to watch when it starts: token, process group, time to kill. */
export const WATCHED = 'NEST_REDIS_LOCK_WATCHED';

/** The environment variable of a watcher that tells the LOCK_TOKEN of the lock in which `run` was started, if in any. */
export const INSIDE = 'NEST_REDIS_LOCK_INSIDE';
