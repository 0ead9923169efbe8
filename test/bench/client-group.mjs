import { startClient } from './client-process.mjs';
import { fairness, sharedStory } from './hand-offs.mjs';
import { median, percentile } from './figures.mjs';
import { nowUs } from './now.mjs';

/** They begin together, a moment after the slowest has heard of it. */
const HEAD_START_US = 20_000;

/**
 * What the processes want at once while they warm up, before they want one key as they will. The compiler needs ten
 * thousand sections in each process, and then they take a third as long. With one key, or on one core with the compiler,
 * that would take minutes.
 */
export const WARM_UP_KEYS = ['warm:0', 'warm:1', 'warm:2', 'warm:3'];
const WARM_UP = { callers: 2 * WARM_UP_KEYS.length, holdMs: 0, keys: WARM_UP_KEYS };

/** Several processes of one contender, which share a key. They warm up for a while before they go to their core. */
export async function startGroup({ core, processes, warmUpMs, settings, ...what }) {
  const all = { ...what, workload: 'hot-key', settings: { ...settings, callers: WARM_UP.callers } };
  const clients = await Promise.all(Array.from({ length: processes }, () => startClient(all)));

  async function loop({ processes: some, callers, ...how }) {
    const beginUs = nowUs() + HEAD_START_US;
    const answers = await Promise.all(
      clients.slice(0, some).map((client) => client.call('loop', { ...how, callers, beginUs })),
    );
    return {
      logs: answers.map(({ log }) => log),
      sections: answers.reduce((sum, { sections }) => sum + sections, 0),
      longestWaitMs: Math.max(...answers.map(({ longestWaitUs }) => longestWaitUs)) / 1000,
    };
  }

  async function measure(shape) {
    const { logs, sections, longestWaitMs } = await loop(shape);
    const story = sharedStory(logs);
    return {
      p50: median(story.handOffs),
      p99: percentile(story.handOffs, 0.99),
      sections,
      longestWaitMs,
      ...fairness(story, logs, shape.callers),
    };
  }

  await loop({ processes, ...WARM_UP, ms: 0.6 * warmUpMs });
  await loop({ processes, callers: 1, holdMs: 1, ms: 0.4 * warmUpMs });
  for (const client of clients) client.moveTo(core);
  return { loop, measure, stop: () => clients.forEach((client) => client.stop()) };
}
