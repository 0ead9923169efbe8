import { setTimeout as sleep } from 'node:timers/promises';
import { startClient } from '../client-process.mjs';
import { otherForms, renewals, rivals, withLock } from '../contenders/index.mjs';
import { medianOf, ratio, short } from '../figures.mjs';
import { whyWatchdog } from '../misses.mjs';
import { roomiest } from '../pinning.mjs';
import { scriptCalls, serverCpu, withRedis } from '../redis.mjs';
import { ratios, shuffled } from '../rounds.mjs';
import { target, TARGET_HEAD } from '../targets.mjs';

const LOCKS = 10_000;
const LEASE_MS = 3000;
/** A whole number of renewals of each: they come every 1 s, or every 2.4 s. */
const WATCH_MS = 9000;
const RENEWING = ['redis-semaphore', 'redlock `using`', 'redlock-universal `using`'];
const contenders = [renewals, withLock, ...[...rivals, ...otherForms].filter(({ name }) => RENEWING.includes(name))];

/** What it costs to keep many locks alive while nothing else happens. */
export async function watchdog({ quick }) {
  const { rounds: count, ...size } = quick ? { rounds: 1, ms: 3000 } : { rounds: 2, ms: WATCH_MS };
  const rounds = contenders.map(() => []);
  await withRedis(roomiest.server, async (redis) => {
    for (let round = 0; round < count; round++) {
      for (const who of shuffled(contenders.length)) rounds[who].push(await keepLocks(redis, contenders[who], size));
    }
  });
  const toFloor = rounds.map((own) => ratios(own, rounds[0], 'clientCpu'));
  const own = contenders.indexOf(withLock);
  return {
    title: 'P5 Watchdog',
    about:
      `${LOCKS.toLocaleString('en-US')} locks held with a lease of ${LEASE_MS / 1000} s, ` +
      `${size.ms / 1000} s watched, ${count} ${count === 1 ? 'round' : 'rounds'}, each in a new process; ` +
      `${roomiest.name}. ` +
      'Libraries that do not renew are left out. Each is set to renew every lease/3 if that can be set; ' +
      'redlock-universal renews at 80 % of the lease.',
    tables: [
      {
        head: [
          '',
          'client CPU × floor',
          'client CPU %',
          'server CPU %',
          'commands / s',
          'heap bytes a lock',
          'longest event-loop delay, ms',
          'still held',
        ],
        rows: contenders.map(({ name }, who) => [
          name,
          ratio(toFloor[who]),
          short(medianOf(rounds[who], 'clientCpu') * 100),
          short(medianOf(rounds[who], 'serverCpu') * 100),
          short(medianOf(rounds[who], 'commands')),
          short(medianOf(rounds[who], 'heapBytes')),
          short(medianOf(rounds[who], 'longestDelayMs')),
          short(medianOf(rounds[who], 'held')),
        ]),
      },
      {
        head: TARGET_HEAD,
        rows: [
          target({ what: 'client CPU × floor', value: toFloor[own].p50, solid: 0.5, goal: 0.35 }),
          target({ what: 'commands a second', value: medianOf(rounds[own], 'commands'), goal: 100 }),
          target({ what: 'heap bytes a lock', value: medianOf(rounds[own], 'heapBytes'), solid: 900, goal: 600 }),
          target({
            what: 'longest event-loop delay',
            value: medianOf(rounds[own], 'longestDelayMs'),
            solid: 15,
            goal: 9,
            unit: ' ms',
          }),
        ],
      },
    ],
    why: whyWatchdog,
  };
}

async function keepLocks(redis, contender, { ms }) {
  const { client: server } = redis;
  await server.flushall();
  const client = await startClient({
    core: roomiest.clients,
    workload: 'watchdog',
    contender,
    url: redis.url,
    settings: { leaseMs: LEASE_MS },
  });
  try {
    const { heapBytes } = await client.call('take', { locks: LOCKS });
    await sleep(LEASE_MS); // the first renewals come in the rhythm of the taking
    const before = { cpu: await serverCpu(server), calls: await scriptCalls(server) };
    const { clientCpu } = await client.call('cpu', { ms });
    const perSecond = (now, then) => (now - then) / (ms / 1000);
    const serverShare = perSecond(await serverCpu(server), before.cpu);
    const commands = perSecond(await scriptCalls(server), before.calls);
    const { longestDelayMs } = await client.call('delay', { ms: LEASE_MS });
    const held = (await server.keys('*account:*')).length;
    return { heapBytes, clientCpu, serverCpu: serverShare, commands, longestDelayMs, held };
  } finally {
    client.stop();
  }
}
