import { startClient } from '../client-process.mjs';
import { placeBatons } from '../contenders/baton.mjs';
import { baton, byHandLocal, promises, rivals, withLock } from '../contenders/index.mjs';
import { median, medianOf, percentile, ratio, short } from '../figures.mjs';
import { sharedStory } from '../hand-offs.mjs';
import { BY_HAND_LOCAL, whyHotKey } from '../misses.mjs';
import { nowUs } from '../now.mjs';
import { pinnings } from '../pinning.mjs';
import { withRedis } from '../redis.mjs';
import { interleaved, nthOf, ratios } from '../rounds.mjs';
import { target, TARGET_HEAD } from '../targets.mjs';
import { countTraffic } from '../traffic.mjs';

const contenders = [baton, promises, byHandLocal, withLock, ...rivals];
const CALLERS = [8, 32, 128];
const SHORT_HOLD = { holdMs: 1, limitMs: 120_000 };
/** What each process does before it is measured: the compiler needs some thousand sections. */
const WARM_UP = { callers: 8, holdMs: 0, ms: 1000 };
/** 10 and 4 µs, where the baton takes 80. */
const HAND_OFF = { solid: 0.125, goal: 0.05 };
const LONG_BURST = { callers: 40, holdMs: 10, limitMs: 8000 };

/**
 * Many callers of one process want the same key: how long it lies idle between one and the next, and what that costs
 * Redis.
 */
export async function hotKey({ quick }) {
  const size = quick ? { starts: 1, warmUps: 0, rounds: 1, ms: 100 } : { starts: 2, warmUps: 0, rounds: 2, ms: 250 };
  const tables = [];
  const targets = [];
  const at32 = (rounds, who) => medianOf(nthOf(rounds[contenders.indexOf(who)], CALLERS.indexOf(32)), 'p50');
  const ofPromises = [];
  const ofByHand = [];
  for (const pinning of pinnings) {
    const result = await underPinning(pinning, size);
    tables.push(tableOf(pinning, result));
    targets.push(...targetsOf(pinning, result));
    ofPromises.push(at32(result.rounds, promises));
    ofByHand.push(at32(result.rounds, byHandLocal));
  }
  return {
    title: 'P3 Hot key, one process',
    about:
      'Callers of one process want one key at the same moment, each once, and hold it for 1 ms. ' +
      'A hand-off is the time from the end of one section ' +
      `to the start of the next. ${size.starts * size.rounds} rounds in ${size.starts} starts. ` +
      `${BY_HAND_LOCAL} ` +
      '“40 × 10 ms” is how long 40 callers take that hold the key for 10 ms each: at least 400 ms. ' +
      'The targets of a hand-off are 10 and 4 µs where the baton takes 80 µs.',
    tables: [...tables, { head: TARGET_HEAD, rows: targets }],
    why: whyHotKey(ofPromises, ofByHand),
  };
}

function tableOf(pinning, { rounds, commands, longBursts }) {
  return {
    head: [
      `${pinning.name}: hand-off p50 / p99 µs`,
      ...CALLERS.map((callers) => `${callers} callers`),
      ...CALLERS.map((callers) => `p50 × floor, ${callers}`),
      'commands at 32',
      '40 × 10 ms',
    ],
    rows: contenders.map(({ name }, who) => [
      name,
      ...CALLERS.map((_, nth) =>
        ['p50', 'p99'].map((figure) => short(medianOf(nthOf(rounds[who], nth), figure))).join(' / '),
      ),
      ...CALLERS.map((_, nth) => ratio(ratios(nthOf(rounds[who], nth), nthOf(rounds[0], nth), 'p50'))),
      short(median(commands[who])),
      longBurst(longBursts[who]),
    ]),
  };
}

function longBurst(bursts) {
  const unserved = bursts.find(({ sections }) => sections < LONG_BURST.callers);
  if (unserved) return `${unserved.sections} of ${LONG_BURST.callers} in ${LONG_BURST.limitMs / 1000} s`;
  return `${short(medianOf(bursts, 'tookMs'))} ms`;
}

function targetsOf({ name }, { rounds, commands, longBursts }) {
  const own = contenders.indexOf(withLock);
  return [
    ...CALLERS.map((callers, nth) =>
      target({
        what: `hand-off × floor, ${callers} callers, ${name}`,
        value: ratios(nthOf(rounds[own], nth), nthOf(rounds[0], nth), 'p50').p50,
        ...HAND_OFF,
      }),
    ),
    target({ what: `commands a section, ${name}`, value: median(commands[own]), solid: 0.25, goal: 0.1 }),
    target({
      what: `40 × 10 ms, ${name}`,
      value: medianOf(longBursts[own], 'tookMs'),
      solid: 420,
      goal: 410,
      unit: ' ms',
    }),
  ];
}

function underPinning(pinning, { ms, ...size }) {
  return withRedis(pinning.server, async (redis) => {
    const commands = contenders.map(() => []);
    const longBursts = contenders.map(() => []);
    const settings = { leaseMs: 30_000, callers: Math.max(...CALLERS) };
    await placeBatons(redis.client, ['hot']);
    const rounds = await interleaved({
      contenders,
      ...size,
      async open(contender) {
        const client = await startClient({
          core: pinning.clients,
          workload: 'hot-key',
          contender,
          url: redis.url,
          settings,
        });
        await client.call('loop', { ...WARM_UP, beginUs: nowUs() });
        return client;
      },
      async measure(client) {
        const figures = [];
        for (const callers of CALLERS) figures.push(await handOffs(client, callers, ms));
        return figures;
      },
      async last(client, who) {
        commands[who].push(
          (await countTraffic(redis, () => client.call('burst', { ...SHORT_HOLD, callers: 32 }))).commands,
        );
        longBursts[who].push(await client.call('burst', LONG_BURST));
        client.stop(); // some may still be waiting
      },
    });
    return { rounds, commands, longBursts };
  });
}

/** Burst after burst until enough time has passed: the slow ones need all of it for one. */
async function handOffs(client, callers, ms) {
  const all = [];
  for (let spent = 0; spent < ms;) {
    const { log, tookMs } = await client.call('burst', { ...SHORT_HOLD, callers });
    all.push(...sharedStory([log]).handOffs);
    spent += tookMs;
  }
  return { p50: median(all), p99: percentile(all, 0.99) };
}
