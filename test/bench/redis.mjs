import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { performance } from 'node:perf_hooks';
import { Redis } from 'ioredis';
import { freePort } from '../support/free-port.mjs';
import { median } from './figures.mjs';
import { onCore } from './pinning.mjs';

/**
 * The shell outlives no one: its standard input closes when this process ends, however it ends, and then it ends the
 * server.
 */
const UNTIL_PARENT_ENDS = 'trap : INT TERM; "$@" & read -r _; kill $! 2>&-; wait';

/** Starts a redis-server of our own that keeps nothing on disk, and ends it when the work is done. */
export async function withRedis(core, work) {
  const redis = await startRedis(core);
  try {
    return await work(redis);
  } finally {
    await redis.stop();
  }
}

/** The same with several that know nothing of each other; `signal` stops, wakes or kills one. */
export async function withRedisServers(core, count, work) {
  const servers = [];
  try {
    for (let at = 0; at < count; at++) servers.push(await startRedis(core));
    const pids = await Promise.all(servers.map(async ({ client }) => field(await client.info('server'), 'process_id')));
    return await work({ urls: servers.map(({ url }) => url), signal: (at, signal) => process.kill(pids[at], signal) });
  } finally {
    for (const server of servers) await server.stop();
  }
}

/** The same with one master and so many replicas that have caught up with it. */
export async function withReplicas(core, count, work) {
  const servers = [];
  try {
    for (let at = 0; at <= count; at++) servers.push(await startRedis(core));
    const [master, ...replicas] = servers;
    await master.client.config('SET', 'repl-diskless-sync-delay', 0);
    for (const { client } of replicas) {
      // Without a file: it would lie where this runs.
      await client.config('SET', 'repl-diskless-load', 'swapdb');
      await client.replicaof('127.0.0.1', master.port);
    }
    while ((await master.client.wait(count, 100)) < count);
    return await work(master);
  } finally {
    for (const server of servers) await server.stop();
  }
}

async function startRedis(core) {
  const port = await freePort();
  const server = onCore(core, [
    'redis-server',
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--save',
    '',
    '--appendonly',
    'no',
    '--loglevel',
    'warning',
  ]);
  const shell = spawn('sh', ['-c', UNTIL_PARENT_ENDS, 'sh', ...server], { stdio: ['pipe', 'ignore', 'inherit'] });
  const client = new Redis({ port, host: '127.0.0.1', retryStrategy: () => 20, maxRetriesPerRequest: 250 });
  client.on('error', () => undefined); // it comes up while we knock; a server that never comes fails the ping
  await client.ping();

  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    client,
    stop: async () => {
      client.disconnect();
      shell.stdin.end();
      await once(shell, 'exit');
    },
  };
}

export function redisVersion() {
  return /v=(\S+)/.exec(execFileSync('redis-server', ['--version'], { encoding: 'utf8' }))[1];
}

/** CPU seconds the server has used so far. */
export async function serverCpu(client) {
  const info = await client.info('cpu');
  return field(info, 'used_cpu_user') + field(info, 'used_cpu_sys');
}

/** Bytes the server has read and written so far. */
export async function serverBytes(client) {
  const info = await client.info('stats');
  return field(info, 'total_net_input_bytes') + field(info, 'total_net_output_bytes');
}

/** Script calls so far. Commands inside a script are counted too, but under their own names. */
export async function scriptCalls(client) {
  const info = await client.info('commandstats');
  return Array.from(info.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm)).reduce(
    (sum, [, calls]) => sum + Number(calls),
    0,
  );
}

/** How long the server has run scripts so far, in µs. */
export async function scriptTimeUs(client) {
  const info = await client.info('commandstats');
  return Array.from(info.matchAll(/^cmdstat_eval(?:sha)?:calls=\d+,usec=(\d+)/gm)).reduce(
    (sum, [, us]) => sum + Number(us),
    0,
  );
}

/** What one command and its answer take on the way to this address. */
export async function pingMs(url) {
  const client = new Redis(url);
  const times = [];
  for (let count = 0; count < 50; count++) {
    const began = performance.now();
    await client.ping();
    times.push(performance.now() - began);
  }
  client.disconnect();
  return median(times);
}

function field(info, name) {
  return Number(new RegExp(`^${name}:(.*)\\r$`, 'm').exec(info)[1]);
}
