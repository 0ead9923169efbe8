import { startClient } from './client-process.mjs';
import { fairness, sharedStory } from './hand-offs.mjs';
import { median, percentile } from './figures.mjs';
import { nowUs } from './now.mjs';

/** They begin together, a moment after the slowest has heard of it. */
const HEAD_START_US = 20_000;

/**
 * Several processes of one contender, which share a key. They warm up for a while, without holding it: the compiler
 * needs some thousand sections.
 */
export async function startGroup({ processes, warmUpMs, ...what }) {
  const clients = await Promise.all(
    Array.from({ length: processes }, () => startClient({ ...what, workload: 'hot-key' })),
  );

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

  await loop({ processes, callers: Math.min(2, what.settings.callers), holdMs: 0, ms: warmUpMs });
  return { loop, measure, stop: () => clients.forEach((client) => client.stop()) };
}
