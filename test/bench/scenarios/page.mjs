import { fork } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { performance } from 'node:perf_hooks';
import { median, short } from '../figures.mjs';
import { moveToCore, roomiest } from '../pinning.mjs';
import { serverCpu, withRedis } from '../redis.mjs';
import { target, TARGET_HEAD } from '../targets.mjs';

const PROCESS = new URL('../page-process.mjs', import.meta.url);
const PROCESSES = 4;
const HELD = 10_000;
const PER_SECOND = 1_000;
/** A view is forgotten after five seconds without a look: the next look makes a snapshot at once. */
const FORGOTTEN_MS = 6_500;

/** What the lock page costs, and how long it takes, under load. */
export async function page({ quick }) {
  const [seconds, rounds, opens] = quick ? [5, 1, 3] : [15, 3, 5];
  const results = { without: [], closed: [], open: [] };
  const snapshots = [];
  for (let round = 0; round < rounds; round++) {
    results.without.push(await underLoad(false, (app) => cpuShares(app, seconds)));
    await underLoad(true, async (app) => {
      results.closed.push(await cpuShares(app, seconds));
      const [first] = app.processes;
      // The first look loads the client, and fetches the times of ten minutes.
      await first.call('open');
      for (let count = 0; count < opens; count++) {
        await sleep(FORGOTTEN_MS);
        snapshots.push(await first.call('open'));
      }
      await first.call('look');
      results.open.push(await cpuShares(app, seconds));
      await first.call('leave');
    });
  }
  const share = (when, who) => median(results[when].map((one) => one[who]));
  const over = (when, who) => share(when, who) - share('without', who);
  const average = (when) => (over(when, 'first') + (PROCESSES - 1) * over(when, 'others')) / PROCESSES;
  const row = (name, when) => [name, ...['first', 'others', 'redis'].map((who) => short(share(when, who)))];
  return {
    title: 'The lock page',
    about:
      `${PROCESSES} processes hold ${HELD} locks, and run ${PER_SECOND} sections a second, all together. ` +
      `Shares of a core, in %; medians of ${rounds} runs of ${seconds} s. One viewer, on the first process.`,
    tables: [
      {
        head: ['', 'first process', 'each other process', 'Redis'],
        rows: [
          row('without `LockPageModule`', 'without'),
          row('with it, nobody looks', 'closed'),
          row('with it, somebody looks', 'open'),
        ],
      },
      {
        head: TARGET_HEAD,
        rows: [
          target({ what: 'a refresh', value: median(snapshots.map(({ ms }) => ms)), solid: 100, unit: ' ms' }),
          target({ what: 'other processes, nobody looks', value: over('closed', 'others'), solid: 2, unit: ' %' }),
          target({ what: 'other processes, somebody looks', value: over('open', 'others'), solid: 2, unit: ' %' }),
          target({ what: 'the app on average, somebody looks', value: average('open'), solid: 2, unit: ' %' }),
          target({ what: 'Redis, somebody looks', value: over('open', 'redis'), solid: 2, unit: ' %' }),
        ],
      },
    ],
  };
}

/** Runs the work while the processes are under load. */
async function underLoad(hasPage, work) {
  return withRedis(roomiest.server, async ({ url, client }) => {
    const processes = [];
    try {
      for (let at = 0; at < PROCESSES; at++) processes.push(await startProcess({ url, hasPage }));
      await sleep(2_000);
      return await work({ processes, client });
    } finally {
      for (const { stop } of processes) stop();
    }
  });
}

/** The shares of a core that the processes and Redis use, in %. */
async function cpuShares({ processes, client }, seconds) {
  const read = async () => ({
    at: performance.now(),
    redis: (await serverCpu(client)) * 1000,
    ours: await Promise.all(processes.map(({ call }) => call('cpu'))),
  });
  const before = await read();
  await sleep(seconds * 1000);
  const after = await read();
  const share = (from, to) => ((to - from) / (after.at - before.at)) * 100;
  const [first, ...others] = after.ours.map((ms, at) => share(before.ours[at], ms));
  return {
    first,
    others: others.reduce((sum, one) => sum + one) / others.length,
    redis: share(before.redis, after.redis),
  };
}

async function startProcess(options) {
  const load = { ...options, held: HELD / PROCESSES, perSecond: PER_SECOND / PROCESSES };
  const child = fork(PROCESS, [JSON.stringify(load)]);
  const waiting = new Map();
  let lastId = 0;
  const answered = (id) => new Promise((resolve) => waiting.set(id, resolve));
  child.on('message', ({ id, answer }) => waiting.get(id)?.(answer));
  const call = (action) => {
    child.send({ id: ++lastId, action });
    return answered(lastId);
  };
  await answered(0);
  moveToCore(roomiest.clients, child.pid);
  return { call, stop: () => child.kill('SIGKILL') };
}
