import { afterEach, expect, it, jest } from '@jest/globals';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';

// The embedded Postgres takes seconds to start on a small machine.
jest.setTimeout(60_000);

// `npm test` has built it.
const LAUNCHER = fileURLToPath(new URL('../../sample-app/dist/launcher.js', import.meta.url));
const launchers: ChildProcess[] = [];

afterEach(() => launchers.splice(0).forEach((launcher) => launcher.kill('SIGKILL')));

function launch(env: NodeJS.ProcessEnv) {
  const launcher = spawn(process.execPath, [LAUNCHER], { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
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
  const ended = once(launcher, 'close').then(([code]) => ({ code, output }));
  return { launcher, saw, ended };
}

/** Connects to a server. The connection closes when the server has ended. */
async function connectTo(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname).on('error', () => {});
  await once(socket, 'connect');
  return socket.resume();
}

it('starts all it needs, says when the port is taken, and stops all of it on SIGTERM', async () => {
  const { launcher, saw, ended } = launch({ PORT: '0', DATABASE_URL: '', REDIS_URL: '' });
  const [redis, api] = await Promise.all([saw(/(redis:\S+)/), saw(/Ready: (\S+)/)]);
  expect((await fetch(`${api}/docs-json`)).status).toBe(200);

  const { port } = new URL(api);
  const second = await launch({ PORT: port }).ended;
  expect(second).toEqual({ code: 1, output: `Port ${port} is taken. Pick another: PORT=${Number(port) + 1} npm start\n` });

  const redisEnds = once(await connectTo(redis), 'close');
  launcher.kill('SIGTERM');

  expect((await ended).code).toBe(0);
  await redisEnds;
  await expect(fetch(api)).rejects.toThrow('fetch failed');
});

it('leaves nothing behind when it is killed', async () => {
  const { launcher, saw } = launch({ PORT: '0', DATABASE_URL: '', REDIS_URL: '' });
  const urls = await Promise.all([saw(/(postgres:\S+)/), saw(/(redis:\S+)/), saw(/Ready: (http:\S+)/)]);
  const connections = await Promise.all(urls.map(connectTo));
  const allEnd = Promise.all(connections.map((connection) => once(connection, 'close')));

  launcher.kill('SIGKILL');

  await allEnd;
});
