import { performance } from 'node:perf_hooks';

/** Many callers at once, each with a key of its own. */
export default function throughput({ section }) {
  const nothing = async () => undefined;

  return {
    async round({ callers, ms }) {
      let sections = 0;
      const cpuBefore = process.cpuUsage();
      const began = performance.now();
      const over = () => performance.now() - began > ms;
      async function caller(number) {
        const key = `account:${number}`;
        for (; !over(); sections++) await section(key, nothing);
      }
      await Promise.all(Array.from({ length: callers }, (_, number) => caller(number)));
      const tookMs = performance.now() - began;
      const { user, system } = process.cpuUsage(cpuBefore);
      return { sections, perSecond: (sections / tookMs) * 1000, clientUs: (user + system) / sections };
    },
  };
}
