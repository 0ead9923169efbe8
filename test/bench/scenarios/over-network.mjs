import { startGroup, WARM_UP_KEYS } from '../client-group.mjs';
import { placeBatons } from '../contenders/baton.mjs';
import { startProxy } from '../../support/redis/tcp-proxy.mjs';
import { rivals, withLock } from '../contenders/index.mjs';
import { medianOf, short } from '../figures.mjs';
import { roomiest } from '../pinning.mjs';
import { barsOf } from '../plots.mjs';
import { pingMs, withRedis } from '../redis.mjs';
import { interleaved } from '../rounds.mjs';
import { target } from '../targets.mjs';

const ONE_WAY_MS = 5;
const SHAPE = { processes: 2, callers: 1, holdMs: 1 };

/** The second half of P4: the same key through a slow network, where only round trips count. */
export function overNetwork({ contenders, ours, quick }) {
  return withRedis(roomiest.server, async (redis) => {
    await placeBatons(redis.client, ['hot', ...WARM_UP_KEYS]);
    const proxy = await startProxy(redis.port);
    try {
      const size = quick ? { rounds: 1, warmUpMs: 200, ms: 500 } : { rounds: 3, warmUpMs: 2000, ms: 1000 };
      const rounds = await measure(proxy, contenders, size);
      const roundTripMs = await pingMs(proxy.url);
      return described({ contenders, ours, rounds, roundTripMs });
    } finally {
      await proxy.stop();
    }
  });
}

function measure(proxy, contenders, { rounds, ms, warmUpMs }) {
  return interleaved({
    contenders,
    starts: 1,
    warmUps: 0,
    rounds,
    open(contender) {
      proxy.delay(0);
      return startGroup({
        ...SHAPE,
        core: roomiest.clients,
        contender,
        url: proxy.url,
        settings: { leaseMs: 30_000 },
        warmUpMs,
      });
    },
    measure(group) {
      proxy.delay(ONE_WAY_MS);
      return group.measure({ ...SHAPE, ms });
    },
  });
}

function described({ contenders, ours, rounds, roundTripMs }) {
  const handOffMs = rounds.map((own) => medianOf(own, 'p50') / 1000);
  const trips = handOffMs.map((ms) => ms / roundTripMs);
  return {
    about:
      `Over the network, a proxy adds ${ONE_WAY_MS} ms each way; ` +
      `a PING through it takes ${short(roundTripMs)} ms, which is one round trip.`,
    table: {
      head: [
        '2 processes × 1, 10 ms network',
        'round trips a hand-off',
        'p50 ms',
        'Jain, processes',
        'longest wait, ms',
      ],
      rows: contenders.map(({ name }, who) => [
        name,
        short(trips[who]),
        short(handOffMs[who]),
        short(medianOf(rounds[who], 'ofProcesses')),
        short(medianOf(rounds[who], 'longestWaitMs')),
      ]),
    },
    plot: {
      file: 'contended',
      title: 'A contended lock, over a network of 10 ms',
      about: 'Round trips from the end of one section to the start of the next, in another process. Shorter is better.',
      ideal: 1,
      bars: barsOf([withLock, ...rivals], [withLock], (one) => trips[contenders.indexOf(one)]),
    },
    targets: [
      target({
        what: `${ours.name}: round trips, 10 ms network`,
        value: trips[contenders.indexOf(ours)],
        solid: 1.1,
        goal: 1.03,
      }),
    ],
  };
}
