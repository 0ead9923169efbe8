import { performance } from 'node:perf_hooks';
import { percentile } from '../figures.mjs';
import { garbageCollection } from '../garbage-collection.mjs';

/** Many callers at once, each with a key of its own. */
export default function throughput({ section }) {
  const nothing = async () => undefined;

  return {
    async round({ callers, ms }) {
      let sections = 0;
      const times = [];
      const collected = garbageCollection();
      const cpuBefore = process.cpuUsage();
      const began = performance.now();
      const over = () => performance.now() - began > ms;
      async function caller(number) {
        const key = `account:${number}`;
        for (; !over(); sections++) {
          const asked = performance.now();
          await section(key, nothing);
          times.push(performance.now() - asked);
        }
      }
      await Promise.all(Array.from({ length: callers }, (_, number) => caller(number)));
      const tookMs = performance.now() - began;
      const { user, system } = process.cpuUsage(cpuBefore);
      const { pausedMs, longestMs } = collected.since();
      return {
        sections,
        perSecond: (sections / tookMs) * 1000,
        clientUs: (user + system) / sections,
        p99Ms: percentile(times, 0.99),
        gcShare: pausedMs / tookMs,
        longestPauseMs: longestMs,
      };
    },
  };
}
