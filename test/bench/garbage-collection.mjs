import { PerformanceObserver } from 'node:perf_hooks';

/** Watches the pauses of the garbage collector in this process, until `since()` is asked once. */
export function garbageCollection() {
  const pauses = [];
  const note = (entries) => pauses.push(...entries.map(({ duration }) => duration));
  const observer = new PerformanceObserver((list) => note(list.getEntries()));
  observer.observe({ entryTypes: ['gc'] });
  return {
    since() {
      note(observer.takeRecords());
      observer.disconnect();
      return { pausedMs: pauses.reduce((sum, ms) => sum + ms, 0), longestMs: Math.max(0, ...pauses) };
    },
  };
}
