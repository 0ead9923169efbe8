import { performance } from 'node:perf_hooks';
import { median } from '../figures.mjs';

/** One caller takes and gives back one free key, again and again. */
export default function uncontended({ section }) {
  const nothing = async () => undefined;

  return {
    async round({ sections }) {
      const times = new Float64Array(sections);
      const cpuBefore = process.cpuUsage();
      for (let done = 0; done < sections; done++) {
        const began = performance.now();
        await section('account:42', nothing);
        times[done] = performance.now() - began;
      }
      const { user, system } = process.cpuUsage(cpuBefore);
      return { sections, p50Us: median(times) * 1000, clientUs: (user + system) / sections };
    },
  };
}
