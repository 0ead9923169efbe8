import { setTimeout as sleep } from 'node:timers/promises';
import { nowUs } from '../now.mjs';

/**
 * Callers that all want one key and hold it for a moment. What happened is written down: `[caller, entered, left]` in
 * µs.
 */
export default function hotKey({ section }) {
  return {
    /** Each caller once, all at the same moment. Those who have not been inside by `limitMs` are not in the log. */
    async burst({ callers, holdMs, limitMs }) {
      const log = [];
      const began = nowUs();
      const caller = (number) =>
        section('hot', async () => {
          const entered = nowUs();
          await sleep(holdMs);
          log.push([number, entered, nowUs()]);
        });
      let timer;
      const limit = new Promise((resolve) => (timer = setTimeout(resolve, limitMs)));
      await Promise.race([Promise.all(Array.from({ length: callers }, (_, number) => caller(number))), limit]);
      clearTimeout(timer);
      return { log, sections: log.length, tookMs: (nowUs() - began) / 1000 };
    },

    /**
     * Each caller again and again, from `beginUs` on, for `ms`. Who still waits then goes in and straight out: a wait,
     * but no turn. With several keys, callers share them out among themselves.
     */
    async loop({ callers, holdMs, ms, beginUs, keys = ['hot'] }) {
      const log = [];
      let sections = 0;
      let longestWaitUs = 0;
      const endUs = beginUs + ms * 1000;
      async function caller(number) {
        for (let asked = nowUs(); asked < endUs; asked = nowUs()) {
          await section(keys[number % keys.length], async () => {
            sections++;
            const entered = nowUs();
            longestWaitUs = Math.max(longestWaitUs, entered - asked);
            if (entered > endUs) return;
            if (holdMs > 0) await sleep(holdMs);
            log.push([number, entered, nowUs()]);
          });
        }
      }
      await sleep((beginUs - nowUs()) / 1000);
      await Promise.all(Array.from({ length: callers }, (_, number) => caller(number)));
      return { log, sections, longestWaitUs };
    },
  };
}
