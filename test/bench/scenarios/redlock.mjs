import { performance } from 'node:perf_hooks';
import { startClient } from '../client-process.mjs';
import { medianOf, ratio, short } from '../figures.mjs';
import { BY_HAND, whyQuorum } from '../misses.mjs';
import { pinnings, roomiest } from '../pinning.mjs';
import { withRedisServers } from '../redis.mjs';
import { interleaved, ratios } from '../rounds.mjs';
import { target, TARGET_HEAD } from '../targets.mjs';

const NODES = 5;
/** Where a figure would be larger, there is none. */
const PATIENCE_MS = 10_000;
const COMMAND_TIMEOUT_MS = 1000;
const LEASE_MS = 5000;

const TARGETS = { 'same core': { solid: 1.4, goal: 1.25 }, split: { solid: 1.25, goal: 1.15 } };

const contender = (form, name) => ({ file: 'quorum', form, name });
const floor = contender('floor', 'floor: five SET NX PX + EVALSHA, on with the majority');
const byHand = contender('whole', 'by hand, with the same promises');
const ours = contender('ours', 'nest-redis-lock `withLock`');
const contenders = [
  floor,
  contender('floor', 'the floor again'),
  byHand,
  ours,
  contender('redlock', 'redlock'),
  contender('universal', 'redlock-universal'),
];

/**
 * Five independent masters: what a lock costs when all are well, when one hangs, and how long an outage takes to be
 * told.
 */
export async function redlock({ quick }) {
  const size = quick
    ? { starts: 1, warmUps: 3, rounds: 5, sections: 200 }
    : { starts: 2, warmUps: 10, rounds: 7, sections: 400 };
  const results = [];
  for (const pinning of pinnings) results.push({ pinning, rounds: await healthy(pinning, size) });
  const faults = [];
  for (const one of contenders) faults.push(one === contenders[1] ? undefined : await inTrouble(one, size));

  const names = pinnings.map(({ name }) => name);
  const toFloor = ({ rounds }, who) => ratios(rounds[who], rounds[0], 'p50Us');
  const rows = contenders.map(({ name }, who) => {
    const { oneHangsUs, toErrorMs } = faults[who] ?? {};
    return [
      name,
      ...results.map((result) => ratio(toFloor(result, who))),
      results.map(({ rounds }) => short(medianOf(rounds[who], 'p50Us'))).join(' / '),
      oneHangsUs ? short(oneHangsUs / faults[who].wellUs) : '–',
      toErrorMs ? short(toErrorMs) : '–',
    ];
  });
  const { wellUs, oneHangsUs, toErrorMs } = faults[contenders.indexOf(ours)];
  const targets = [
    ...results.map((result) =>
      target({
        what: `p50, ${result.pinning.name}, × floor`,
        value: toFloor(result, contenders.indexOf(ours)).p50,
        ...TARGETS[result.pinning.name],
      }),
    ),
    target({ what: 'one hangs, × healthy', value: oneHangsUs / wellUs, solid: 1.2, goal: 1 }),
    target({
      what: 'three dead: error, × command time-out',
      value: toErrorMs / COMMAND_TIMEOUT_MS,
      solid: 1.2,
      goal: 1.05,
    }),
  ];
  return {
    title: 'P6 Redlock, five masters',
    about:
      `One caller acquires and releases one free key on ${NODES} independent Redis servers. ` +
      `Median time of a section, ${size.sections} sections a round, ` +
      `${size.starts * size.rounds} rounds in ${size.starts} starts. ` +
      'Then one node is stopped, and then three are killed: the time until the next call ' +
      `is refused. "–": not within ${PATIENCE_MS / 1000} s. The floor does not notice that nodes are gone: ` +
      `its clients wait for them. ${BY_HAND}`,
    tables: [
      {
        head: [
          '',
          ...names.map((name) => `× floor, ${name}`),
          'p50 µs',
          'one hangs, × healthy',
          'three dead: error after ms',
        ],
        rows,
      },
      { head: TARGET_HEAD, rows: targets },
    ],
    why: whyQuorum(results.map((result) => toFloor(result, contenders.indexOf(byHand)).p50)),
  };
}

const clientOn = (pinning, one, servers) =>
  startClient({
    core: pinning.clients,
    workload: 'uncontended',
    contender: one,
    url: servers.urls.join(','),
    settings: { leaseMs: LEASE_MS },
  });

function healthy(pinning, { sections, ...size }) {
  return withRedisServers(pinning.server, NODES, (servers) =>
    interleaved({
      contenders,
      ...size,
      open: (one) => clientOn(pinning, one, servers),
      measure: (client) => client.call('round', { sections }),
    }),
  );
}

function inTrouble(one, { sections }) {
  return withRedisServers(roomiest.server, NODES, async (servers) => {
    const client = await clientOn(roomiest, one, servers);
    try {
      for (let round = 0; round < 3; round++) await client.call('round', { sections });
      const well = await client.call('round', { sections });
      servers.signal(2, 'SIGSTOP');
      const oneHangs = await inTime(
        client.call('round', { sections: 50 }).then(() => client.call('round', { sections })),
      );
      servers.signal(2, 'SIGCONT');
      if (!oneHangs) return { wellUs: well.p50Us };
      for (const at of [0, 1, 2]) servers.signal(at, 'SIGKILL');
      const began = performance.now();
      const told = await inTime(
        client.call('round', { sections: 1 }).then(
          () => undefined,
          () => performance.now() - began,
        ),
      );
      return { wellUs: well.p50Us, oneHangsUs: oneHangs.p50Us, toErrorMs: told };
    } finally {
      client.stop();
    }
  });
}

/** What it resolves with, or nothing when that takes too long. */
async function inTime(promise) {
  let timer;
  const late = new Promise((resolve) => (timer = setTimeout(resolve, PATIENCE_MS)));
  promise.catch(() => undefined);
  const outcome = await Promise.race([promise.catch(() => undefined), late]);
  clearTimeout(timer);
  return outcome;
}
