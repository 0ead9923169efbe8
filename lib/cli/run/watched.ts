/** Reads the monotonic clock that all processes of this machine share, in ms. */
export const sharedNow = (): number => Number(process.hrtime.bigint()) / 1e6;

/** The environment variable that tells the watcher what to watch when it starts: token, process group, time to kill. */
export const WATCHED = 'NEST_REDIS_LOCK_WATCHED';
