import { startClient } from '../client-process.mjs';
import { heard } from '../contenders/index.mjs';
import { medianOf, ratio, short } from '../figures.mjs';
import { pinnings, strictest } from '../pinning.mjs';
import { withRedis } from '../redis.mjs';
import { interleaved, ratios } from '../rounds.mjs';

/** What it costs a free lock that somebody hears of it, measures it, or watches for how long it is held. */
export async function events({ quick }) {
  const size = quick
    ? { starts: 1, warmUps: 4, rounds: 5, sections: 500 }
    : { starts: 3, warmUps: 4, rounds: 10, sections: 600 };
  const results = [];
  for (const pinning of pinnings)
    results.push({
      where: pinning.name,
      rounds: await withRedis(pinning.server, ({ url }) => measure(pinning, size, url)),
    });
  // Nothing but the library itself: ten times as many sections take as long.
  const inMemory = { ...size, sections: size.sections * 10 };
  results.push({ where: 'in memory', rounds: await measure(strictest, inMemory) });
  return {
    title: 'The price of events, metrics and traces',
    about:
      'One caller acquires and releases one free key, while nobody listens, or with one subscriber to `locks.events`, which counts ' +
      'the two events of each lock, or with a module that measures or traces each of them: nothing is exported, every span is ' +
      'sampled. Ratios to the first row. “In memory” is `MemoryLockStore`: the time of the library alone. ' +
      `Median time of a section, ${size.sections} sections a round (in memory ${inMemory.sections}), ` +
      `${size.starts * size.rounds} rounds in ${size.starts} starts.`,
    tables: [
      {
        head: ['', ...results.map(({ where }) => `×, ${where}`), 'p50 µs'],
        rows: heard.map(({ name }, who) => [
          name,
          ...results.map(({ rounds }) => ratio(ratios(rounds[who], rounds[0], 'p50Us'))),
          results.map(({ rounds }) => short(medianOf(rounds[who], 'p50Us'))).join(' / '),
        ]),
      },
    ],
  };
}

function measure({ clients }, { sections, ...size }, url) {
  return interleaved({
    contenders: heard,
    ...size,
    open: (contender) =>
      startClient({ core: clients, workload: 'uncontended', contender, url, settings: { leaseMs: 30_000 } }),
    measure: (client) => client.call('round', { sections }),
  });
}
