import { startClient } from '../client-process.mjs';
import {
  byHand,
  decorated,
  fencedFloor,
  floor,
  floorAgain,
  onIoredis5,
  otherForms,
  rivals,
  withLock,
} from '../contenders/index.mjs';
import { medianOf, ratio, short } from '../figures.mjs';
import { BY_HAND, whyUncontended } from '../misses.mjs';
import { pinnings, strictest } from '../pinning.mjs';
import { barsOf } from '../plots.mjs';
import { serverCpu, withRedis } from '../redis.mjs';
import { interleaved, ratios } from '../rounds.mjs';
import { target, TARGET_HEAD } from '../targets.mjs';
import { countTraffic } from '../traffic.mjs';

const contenders = [floor, floorAgain, fencedFloor, byHand, withLock, onIoredis5, decorated, ...rivals, ...otherForms];
const TARGETS = { 'same core': { solid: 1.15, goal: 1.11 }, split: { solid: 1.08, goal: 1.05 } };

/** One caller, one free key, nothing to do inside: what a lock costs when nobody is in the way. */
export async function uncontended({ quick }) {
  const size = quick
    ? { starts: 1, warmUps: 4, rounds: 5, sections: 500 }
    : { starts: 2, warmUps: 10, rounds: 10, sections: 600 };
  const results = [];
  for (const pinning of pinnings) results.push({ pinning, ...(await underPinning(pinning, size)) });

  const names = pinnings.map(({ name }) => name);
  const toFloor = ({ rounds }, who) => ratios(rounds[who], rounds[0], 'p50Us');
  const inBoth = (one) => results.map((result) => toFloor(result, contenders.indexOf(one)).p50);
  const rows = contenders.map(({ name }, who) => {
    const both = (figure) => results.map(({ rounds }) => short(medianOf(rounds[who], figure))).join(' / ');
    const { commands, bytes } = results[0].traffic[who];
    return [
      name,
      ...results.map((result) => ratio(toFloor(result, who))),
      both('p50Us'),
      short(commands),
      short(bytes),
      both('serverUs'),
      both('clientUs'),
    ];
  });
  const targets = [withLock, decorated].flatMap((ours) =>
    results.map((result) => {
      const { name } = result.pinning;
      return target({
        what: `${ours.name}, ${name}`,
        value: toFloor(result, contenders.indexOf(ours)).p50,
        ...TARGETS[name],
      });
    }),
  );
  return {
    title: 'P1 Uncontended',
    about:
      `One caller acquires and releases one free key. Median time of a section, ${size.sections} sections a round, ` +
      `${size.starts * size.rounds} rounds in ${size.starts} starts. ` +
      `Absolute figures and CPU are ${names.join(' / ')}. ${BY_HAND}`,
    tables: [
      {
        head: [
          '',
          ...names.map((name) => `× floor, ${name}`),
          'p50 µs',
          'commands',
          'bytes',
          'server CPU µs',
          'client CPU µs',
        ],
        rows,
      },
      { head: TARGET_HEAD, rows: targets },
    ],
    why: whyUncontended(inBoth(byHand), inBoth(fencedFloor)),
    plot: {
      file: 'uncontended',
      title: 'A free lock',
      about: `Median time to acquire and release a free key, ${strictest.name}. 1 is the floor by hand; shorter is better.`,
      ideal: 1,
      bars: barsOf([withLock, decorated, ...rivals], [withLock, decorated], (one) => {
        return toFloor(results[0], contenders.indexOf(one)).p50;
      }),
    },
  };
}

function underPinning(pinning, { sections, ...size }) {
  return withRedis(pinning.server, async (redis) => {
    const traffic = [];
    const rounds = await interleaved({
      contenders,
      ...size,
      open: (contender) =>
        startClient({
          core: pinning.clients,
          workload: 'uncontended',
          contender,
          url: redis.url,
          settings: { leaseMs: 30_000 },
        }),
      async measure(client) {
        const before = await serverCpu(redis.client);
        const figures = await client.call('round', { sections });
        const spent = (await serverCpu(redis.client)) - before;
        return { ...figures, serverUs: (spent / sections) * 1e6 };
      },
      async last(client, who) {
        traffic[who] = await countTraffic(redis, () => client.call('round', { sections: 200 }));
      },
    });
    return { rounds, traffic };
  });
}
