import { startClient } from '../client-process.mjs';
import {
  batched,
  byHand,
  decorated,
  floor,
  pipelinedFloor,
  onIoredis5,
  rivals,
  withLock,
} from '../contenders/index.mjs';
import { medianOf, ratio, short } from '../figures.mjs';
import { BY_HAND, whyThroughput } from '../misses.mjs';
import { pinnings, strictest } from '../pinning.mjs';
import { barsOf } from '../plots.mjs';
import { withRedis } from '../redis.mjs';
import { interleaved, nthOf, ratios } from '../rounds.mjs';
import { target, TARGET_HEAD } from '../targets.mjs';
import { countTraffic } from '../traffic.mjs';

const contenders = [floor, pipelinedFloor, batched, byHand, withLock, onIoredis5, decorated, ...rivals];
const CALLERS = [1, 16, 64, 256];
const AT_64 = CALLERS.indexOf(64);
const AT_256 = CALLERS.indexOf(256);
const SOLID = { 'same core': [0.85, 1.9, 2.8, 3.2], split: [0.92, 1.5, 2.7, 3.2] };
const GOAL = [1, 1.7, 3.2, 4];
const named = (callers) => (callers === 1 ? '1 caller' : `${callers} callers`);

/** Many callers of one process at once, each with a key of its own: how many sections a second go through. */
export async function throughput({ quick }) {
  const size = quick ? { starts: 1, warmUps: 2, rounds: 3, ms: 60 } : { starts: 2, warmUps: 5, rounds: 3, ms: 100 };
  const results = [];
  for (const pinning of pinnings) results.push(await underPinning(pinning, size));
  const tables = pinnings.map((pinning, nth) => tableOf(pinning, results[nth]));
  const targets = pinnings.flatMap((pinning, nth) => targetsOf(pinning, results[nth]));
  return {
    title: 'P2 Throughput',
    about:
      `Callers of one process, each looping over its own free key, ${size.ms} ms a round, ` +
      `${size.starts * size.rounds} rounds in ${size.starts} starts. ` +
      'Sections a second: more is better. “The calls of a tick in one script” is the cheapest way: ' +
      `a promise for each call, but no fence, no queue and no renewal. ${BY_HAND}`,
    tables: [...tables, { head: TARGET_HEAD, rows: targets }],
    why: pinnings
      .map(({ name }, nth) =>
        whyThroughput(
          name,
          CALLERS,
          CALLERS.map((_, at) => toFloor(results[nth], contenders.indexOf(byHand), at).p50),
        ),
      )
      .join(' '),
    plot: {
      file: 'throughput',
      title: 'A busy process',
      about: `Sections a second of 64 callers with a key each, ${strictest.name}. 1 is the floor by hand; longer is better.`,
      ideal: 1,
      bars: barsOf([withLock, decorated, ...rivals], [withLock, decorated], (one) => {
        return toFloor(results[0], contenders.indexOf(one), AT_64).p50;
      }),
    },
  };
}

const toFloor = ({ rounds }, who, nth) => ratios(nthOf(rounds[who], nth), nthOf(rounds[0], nth), 'perSecond');

function tableOf(pinning, result) {
  const { rounds, traffic } = result;
  return {
    head: [
      `${pinning.name}: × floor`,
      ...CALLERS.map(named),
      'p99 ms at 64 / 256',
      'GC % at 64',
      'longest pause ms',
      'commands at 64',
      'bytes at 64',
      'client CPU µs at 64',
    ],
    rows: contenders.map(({ name }, who) => {
      const figure = (nth) =>
        who === 0 ? `${short(medianOf(nthOf(rounds[0], nth), 'perSecond'))} /s` : ratio(toFloor(result, who, nth));
      const at64 = (which) => medianOf(nthOf(rounds[who], AT_64), which);
      const { commands, bytes } = traffic[who];
      return [
        name,
        ...CALLERS.map((_, nth) => figure(nth)),
        [AT_64, AT_256].map((nth) => short(medianOf(nthOf(rounds[who], nth), 'p99Ms'))).join(' / '),
        short(at64('gcShare') * 100),
        short(at64('longestPauseMs')),
        short(commands),
        short(bytes),
        short(at64('clientUs')),
      ];
    }),
  };
}

function targetsOf({ name }, result) {
  const own = contenders.indexOf(withLock);
  const at64 = (which) => medianOf(nthOf(result.rounds[own], AT_64), which);
  return [
    ...CALLERS.map((callers, nth) =>
      target({
        what: `${withLock.name}, ${named(callers)}, ${name}`,
        value: toFloor(result, own, nth).p50,
        solid: SOLID[name]?.[nth],
        goal: GOAL[nth],
        atLeast: true,
      }),
    ),
    target({ what: `p99 at 64 callers, ${name}`, value: at64('p99Ms'), solid: 1.6, unit: ' ms' }),
    target({ what: `garbage collection at 64 callers, ${name}`, value: at64('gcShare') * 100, solid: 5, unit: ' %' }),
  ];
}

function underPinning(pinning, { ms, ...size }) {
  return withRedis(pinning.server, async (redis) => {
    const traffic = [];
    const rounds = await interleaved({
      contenders,
      ...size,
      open: (contender) =>
        startClient({
          core: pinning.clients,
          workload: 'throughput',
          contender,
          url: redis.url,
          settings: { leaseMs: 30_000 },
        }),
      async measure(client) {
        const figures = [];
        for (const callers of CALLERS) figures.push(await client.call('round', { callers, ms }));
        return figures;
      },
      async last(client, who) {
        traffic[who] = await countTraffic(redis, () => client.call('round', { callers: 64, ms: 30 }));
      },
    });
    return { rounds, traffic };
  });
}
