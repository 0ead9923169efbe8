import { startGroup, WARM_UP_KEYS } from '../client-group.mjs';
import { startClient } from '../client-process.mjs';
import { placeBatons } from '../contenders/baton.mjs';
import { baton, byHand, fair, published, rivals, withLock } from '../contenders/index.mjs';
import { medianOf, ratio, short } from '../figures.mjs';
import { BY_HAND, whyHandOff } from '../misses.mjs';
import { pinnings, unpinned } from '../pinning.mjs';
import { scriptTimeUs, serverCpu, withRedis } from '../redis.mjs';
import { interleaved, nthOf, ratios } from '../rounds.mjs';
import { target, TARGET_HEAD } from '../targets.mjs';
import { countTraffic } from '../traffic.mjs';
import { overNetwork } from './over-network.mjs';

const SHAPES = [
  [2, 1],
  [4, 1],
  [2, 8],
  [4, 8],
].map(([processes, callers]) => ({ processes, callers, holdMs: 1 }));
/** Without a place of their own, too: what users see. */
const placings = pinnings.includes(unpinned) ? pinnings : [...pinnings, unpinned];
const HAND_OFF = {
  'same core': { solid: 2.5, goal: 2 },
  split: { solid: 1.8, goal: 1.5 },
  unpinned: { solid: 1.7, goal: 1.3 },
};
const named = ({ processes, callers }) => `${processes} processes × ${callers}`;

/** Several processes want one key, again and again: the hand-off, what it costs Redis, and who gets a turn. */
export async function hotKeyProcesses({ quick }) {
  const size = quick ? { warmUpMs: 500, rounds: 1, ms: 200 } : { warmUpMs: 10_000, rounds: 3, ms: 300 };
  const strict = (await knowsFair()) ? [fair] : [];
  const contenders = [baton, published, byHand, withLock, ...strict, ...rivals];
  const ours = strict[0] ?? withLock;

  const results = [];
  for (const pinning of placings) results.push({ pinning, ...(await underPinning(pinning, contenders, size)) });
  const network = await overNetwork({ contenders, ours, quick });
  const inAll = (one) => results.map((result) => toFloor(result, contenders.indexOf(one), 0).p50);
  return {
    title: 'P4 Hot key, several processes',
    about:
      'Each caller loops over one key and holds it for 1 ms; 2 or 4 processes with 1 or 8 callers each; ' +
      `${size.ms} ms a round, ${size.rounds} rounds. ` +
      'The hand-off alone can flatter: a library that lets the last holder in again at once hands off fast, ' +
      'but leaves the others outside. ' +
      'That shows in Jain’s index (1: all callers get the same; 1/n: one of n gets everything) ' +
      'and in the longest wait. The baton blocks a connection for each caller. ' +
      '“A queue and PUBLISH” is the cheapest hand-off without such a connection: ' +
      `it has no fence, and does not check whether the next caller is still there. ${BY_HAND} ` +
      `Figures with strokes are ${placings.map(({ name }) => name).join(' / ')}. ${network.about}`,
    tables: [
      ...SHAPES.map((shape, nth) => tableOf(shape, nth, contenders, results)),
      network.table,
      {
        head: TARGET_HEAD,
        rows: [...results.flatMap((result) => targetsOf(result, contenders.indexOf(ours), ours)), ...network.targets],
      },
    ],
    why: whyHandOff(
      placings.map(({ name }) => name),
      inAll(byHand),
      inAll(published),
    ),
    plot: network.plot,
  };
}

const toFloor = ({ rounds }, who, nth) => ratios(nthOf(rounds[who], nth), nthOf(rounds[0], nth), 'p50');

function tableOf(shape, nth, contenders, results) {
  const columns = {
    'p50 µs': 'p50',
    'p99 µs': 'p99',
    'Redis CPU µs': 'redisUs',
    'script µs': 'scriptUs',
    'script µs, warm': 'warmScriptUs',
    commands: 'commands',
    'Jain, processes': 'ofProcesses',
    'Jain, callers': 'ofCallers',
    'longest wait, ms': 'longestWaitMs',
  };
  return {
    head: [named(shape), ...placings.map(({ name }) => `× floor, ${name}`), ...Object.keys(columns)],
    rows: contenders.map(({ name }, who) => {
      const both = (figure) =>
        results.map(({ rounds }) => short(medianOf(nthOf(rounds[who], nth), figure))).join(' / ');
      return [name, ...results.map((result) => ratio(toFloor(result, who, nth))), ...Object.values(columns).map(both)];
    }),
  };
}

function targetsOf(result, who, { name }) {
  return SHAPES.flatMap((shape, nth) => {
    const where = `${named(shape)}, ${result.pinning.name}`;
    const figure = (which) => medianOf(nthOf(result.rounds[who], nth), which);
    return [
      target({
        what: `${name}: hand-off × floor, ${where}`,
        value: toFloor(result, who, nth).p50,
        ...HAND_OFF[result.pinning.name],
      }),
      target({ what: `${name}: Redis CPU, ${where}`, value: figure('redisUs'), solid: 120, goal: 90, unit: ' µs' }),
      target({ what: `${name}: commands, ${where}`, value: figure('commands'), solid: 2.1 }),
      target({
        what: `${name}: Jain, ${where}`,
        value: figure('ofProcesses'),
        solid: 0.98,
        goal: 0.995,
        atLeast: true,
      }),
    ];
  });
}

function underPinning(pinning, contenders, { ms, warmUpMs, rounds: count }) {
  return withRedis(pinning.server, async (redis) => {
    await placeBatons(redis.client, ['hot', ...WARM_UP_KEYS]);
    const atLast = [];
    const rounds = await interleaved({
      contenders,
      starts: 1,
      warmUps: 0,
      rounds: count,
      open: (contender) =>
        startGroup({
          core: pinning.clients,
          processes: 4,
          contender,
          url: redis.url,
          settings: { leaseMs: 30_000 },
          warmUpMs,
        }),
      async measure(group) {
        const figures = [];
        for (const shape of SHAPES) figures.push(await withServerTime(redis, () => group.measure({ ...shape, ms })));
        return figures;
      },
      async last(group, who) {
        atLast[who] = [];
        for (const shape of SHAPES) {
          const { commands } = await countTraffic(redis, () => group.loop({ ...shape, ms: ms / 2 }));
          const { scriptUs } = await withServerTime(redis, () => group.loop({ ...shape, holdMs: 0, ms }));
          atLast[who].push({ commands, warmScriptUs: scriptUs });
        }
      },
    });
    const counted = (own, who) =>
      own.map((round) => round.map((figures, nth) => ({ ...figures, ...atLast[who][nth] })));
    return { rounds: rounds.map(counted) };
  });
}

/** What the server spends on a section; most of it on scripts, if there are any. */
async function withServerTime({ client }, run) {
  const [cpu, scripts] = [await serverCpu(client), await scriptTimeUs(client)];
  const figures = await run();
  const { sections } = figures;
  return {
    ...figures,
    redisUs: (((await serverCpu(client)) - cpu) / sections) * 1e6,
    scriptUs: ((await scriptTimeUs(client)) - scripts) / sections,
  };
}

/** Older builds, which BENCH_LIB can name, refuse `fair: true`. */
function knowsFair() {
  return withRedis(undefined, async ({ url }) => {
    const probe = await startClient({ workload: 'hot-key', contender: fair, url, settings: { leaseMs: 30_000 } }).catch(
      () => undefined,
    );
    probe?.stop();
    return probe !== undefined;
  });
}
