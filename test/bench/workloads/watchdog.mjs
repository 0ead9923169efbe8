import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

const CONCURRENCY = 256;

/** Takes many locks and keeps them, to see what keeping costs. */
export default function watchdog({ hold }) {
  const held = [];

  return {
    async take({ locks }) {
      await hold('the first brings its scripts and buffers');
      globalThis.gc();
      const before = process.memoryUsage().heapUsed;
      let next = 0;
      async function taker() {
        while (next < locks) held.push(await hold(`account:${next++}`));
      }
      await Promise.all(Array.from({ length: CONCURRENCY }, taker));
      globalThis.gc();
      return { heapBytes: (process.memoryUsage().heapUsed - before) / locks };
    },

    async cpu({ ms }) {
      const before = process.cpuUsage();
      const began = performance.now();
      await sleep(ms);
      const { user, system } = process.cpuUsage(before);
      return { clientCpu: (user + system) / 1000 / (performance.now() - began) };
    },

    /** Apart from the CPU, because looking each millisecond costs some. */
    async delay({ ms }) {
      const resolution = 1;
      const delays = monitorEventLoopDelay({ resolution });
      delays.enable();
      await sleep(ms);
      delays.disable();
      return { longestDelayMs: delays.max / 1e6 - resolution };
    },
  };
}
