import { startClient } from '../client-process.mjs';
import { durable, withLock } from '../contenders/index.mjs';
import { medianOf, ratio, short } from '../figures.mjs';
import { pinnings } from '../pinning.mjs';
import { withReplicas } from '../redis.mjs';
import { interleaved, ratios } from '../rounds.mjs';

const REPLICAS = 2;
const LEASE_MS = 2000;
const contenders = [withLock, ...durable];

/** What it costs to wait until replicas have each grant. */
export async function durability({ quick }) {
  const size = quick
    ? { starts: 1, warmUps: 3, rounds: 5, sections: 200 }
    : { starts: 2, warmUps: 4, rounds: 8, sections: 400 };
  const results = [];
  for (const pinning of pinnings) results.push(await underPinning(pinning, size));
  const toPlain = (rounds, who) => ratio(ratios(rounds[who], rounds[0], 'p50Us'));
  return {
    title: 'The price of `durability`',
    about:
      `One caller acquires and releases one free key of a master with ${REPLICAS} replicas, ` +
      'all on this machine. Over a network, add a round trip between them. ' +
      `Median time of a section, ${size.sections} sections a round, ` +
      `${size.starts * size.rounds} rounds in ${size.starts} starts.`,
    tables: [
      {
        head: ['', ...pinnings.map(({ name }) => `× without, ${name}`), 'p50 µs'],
        rows: contenders.map(({ name }, who) => [
          name,
          ...results.map((rounds) => toPlain(rounds, who)),
          results.map((rounds) => short(medianOf(rounds[who], 'p50Us'))).join(' / '),
        ]),
      },
    ],
  };
}

function underPinning(pinning, { sections, ...size }) {
  return withReplicas(pinning.server, REPLICAS, ({ url }) =>
    interleaved({
      contenders,
      ...size,
      open: (contender) =>
        startClient({
          core: pinning.clients,
          workload: 'uncontended',
          contender,
          url,
          settings: { leaseMs: LEASE_MS },
        }),
      measure: (client) => client.call('round', { sections }),
    }),
  );
}
