import { afterEach, expect, it, jest } from '@jest/globals';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { until } from '../support/deferred.js';
import { freePort } from '../support/free-port.mjs';

// The embedded Postgres takes seconds to start on a small machine.
jest.setTimeout(60_000);

// `npm test` has built it.
const LAUNCHER = fileURLToPath(new URL('../../sample-app/dist/dev/launcher.js', import.meta.url));
const APP = fileURLToPath(new URL('../../sample-app/dist/src/main.js', import.meta.url));
const launchers: ChildProcess[] = [];

afterEach(() => launchers.splice(0).forEach(killGroup));

function launch(env: NodeJS.ProcessEnv, [command, ...args]: [string, ...string[]] = [process.execPath, LAUNCHER]) {
  const launcher = spawn(command, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  launchers.push(launcher);
  let output = '';
  const collect = (chunk: Buffer) => (output += chunk.toString());
  launcher.stdout.on('data', collect);
  launcher.stderr.on('data', collect);

  const saw = async (text: RegExp): Promise<string> => {
    for (;;) {
      const found = text.exec(output)?.[1];
      if (found) return found;
      await once(launcher.stdout, 'data');
    }
  };
  const ended = once(launcher, 'close').then(([code, signal]) => ({ code, signal, output }));
  return { launcher, saw, ended };
}

/** npm, its shell and the launcher. */
function killGroup({ pid }: ChildProcess): void {
  try {
    process.kill(-pid!, 'SIGKILL');
  } catch {
    // They have all ended.
  }
}

function postJson(url: string, body: object): Promise<Response> {
  return fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });
}

/** Connects to a server. The connection closes when the server has ended. */
async function connectTo(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname).on('error', () => {});
  await once(socket, 'connect');
  return socket.resume();
}

/** Connects to the database, to Redis and to the app. `allEnd` resolves when all three have ended. */
async function connectToAll(saw: (text: RegExp) => Promise<string>) {
  const urls = await Promise.all([saw(/(postgres:\S+)/), saw(/(redis:\S+)/), saw(/Ready: (http:\S+)/)]);
  const connections = await Promise.all(urls.map(connectTo));
  return { allEnd: Promise.all(connections.map((connection) => once(connection, 'close'))) };
}

it('the launcher starts all it needs, says when the port is taken, and stops all of it on SIGTERM', async () => {
  const { launcher, saw, ended } = launch({ PORT: '0', DATABASE_URL: '', REDIS_URL: '' });
  const [redis, api] = await Promise.all([saw(/(redis:\S+)/), saw(/Ready: (\S+)/)]);
  expect((await fetch(`${api}/docs-json`)).status).toBe(200);
  const [locks, password] = await Promise.all([saw(/The locks, live: (\S+)/), saw(/user ops, password (\S+)\)/)]);
  const authorization = `Basic ${Buffer.from(`ops:${password}`).toString('base64')}`;
  expect((await fetch(locks)).status).toBe(401);
  expect((await fetch(locks, { headers: { authorization } })).status).toBe(200);

  const { port } = new URL(api);
  const second = await launch({ PORT: port }).ended;
  expect(second).toEqual({
    code: 1,
    signal: null,
    output: `Port ${port} is taken. Pick another: PORT=${Number(port) + 1} npm start\n`,
  });

  const redisEnds = once(await connectTo(redis), 'close');
  launcher.kill('SIGTERM');

  expect((await ended).code).toBe(0);
  await redisEnds;
  await expect(fetch(api)).rejects.toThrow('fetch failed');
});

it('the launcher says in one line why the database can not be used', async () => {
  const DATABASE_URL = `postgres://shop@127.0.0.1:${await freePort()}/shop`;
  const { code, output } = await launch({ PORT: '0', DATABASE_URL, REDIS_URL: '' }).ended;
  expect(code).toBe(1);
  expect(output.trim().split('\n').at(-1)).toMatch(/^The database cannot be used: connect ECONNREFUSED/);
});

it('the app runs without a launcher, and answers requests that wait for a lock when SIGTERM comes', async () => {
  const { saw } = launch({ PORT: '0', DATABASE_URL: '', REDIS_URL: '' });
  const [databaseUrl, redisUrl] = await Promise.all([saw(/(postgres:\S+)/), saw(/(redis:\S+)/), saw(/Ready: (\S+)/)]);
  const PORT = String(await freePort());
  const env = { PORT, DATABASE_URL: databaseUrl.replace('***', 'postgres'), REDIS_URL: redisUrl, LOCK_WAIT: '1m' };
  const app = launch(env, [process.execPath, APP]);
  await app.saw(/(successfully started)/);
  const somebodyElse = new Redis(redisUrl);
  await somebodyElse.set('lock:account:1', 'mine', 'PX', 60_000);

  const answer = postJson(`http://127.0.0.1:${PORT}/accounts/1/withdraw`, { amount: 1 });
  await until(async () => (await somebodyElse.dbsize()) >= 2); // it waits
  somebodyElse.disconnect();
  app.launcher.kill('SIGTERM');

  expect((await answer).status).toBe(503);
  expect(await app.ended).toMatchObject({ signal: 'SIGTERM' });
});

it('SIGTERM to npm stops all of it, though npm does not pass it on', async () => {
  const npmStart: [string, ...string[]] = ['npm', 'start', '--ignore-scripts'];
  const { launcher, saw } = launch({ PORT: '0', DATABASE_URL: '', REDIS_URL: '' }, npmStart);
  const { allEnd } = await connectToAll(saw);

  launcher.kill('SIGTERM');

  await allEnd;
});

it('the launcher leaves nothing behind when it is killed', async () => {
  const { launcher, saw } = launch({ PORT: '0', DATABASE_URL: '', REDIS_URL: '' });
  const { allEnd } = await connectToAll(saw);

  launcher.kill('SIGKILL');

  await allEnd;
});
