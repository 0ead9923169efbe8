import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { freePort } from '../free-port.mjs';

/** Another server to test on: `REDIS_SERVER=valkey-server npm test`. */
export const SERVER = process.env['REDIS_SERVER'] ?? 'redis-server';

export interface RedisServer {
  readonly port: number;
  readonly url: string;
  readonly pid: number;
  readonly isRunning: boolean;
  /** Kills it without a goodbye. */
  kill(): Promise<void>;
  /** Starts it again on its port, empty, if it keeps nothing on disk. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts a real, empty redis-server of its own on a free port of the loopback interface; `more` are options such as
 * `--maxclients`.
 */
export const startRedis = (...more: string[]): Promise<RedisServer> => startRedisIn({}, ...more);

/** The same, in an environment with these variables besides. */
export async function startRedisIn(env: NodeJS.ProcessEnv, ...more: string[]): Promise<RedisServer> {
  const port = await freePort();
  const options = [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--save',
    '',
    '--appendonly',
    'no',
    '--daemonize',
    'no',
    // The default of Redis 6 leaves a file where the tests run, which the next server would load.
    '--repl-diskless-sync',
    'yes',
    ...more,
  ];
  let server = await launch(options, READY, env);
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    get pid() {
      return server.pid;
    },
    get isRunning() {
      return server.isRunning;
    },
    kill: () => server.stop(),
    stop: () => server.stop(),
    restart: async () => {
      await server.stop();
      server = await launch(options, READY, env);
    },
  };
}

const READY = 'Ready to accept connections';

interface Launched {
  readonly pid: number;
  readonly isRunning: boolean;
  stop(): Promise<void>;
}

/** Starts a redis-server; resolves when it has said so. */
export async function launch(
  options: readonly string[],
  ready: string,
  env: NodeJS.ProcessEnv = {},
): Promise<Launched> {
  const server = spawn(SERVER, options, { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, ...env } });
  const killIt = () => server.kill('SIGKILL');
  process.once('exit', killIt);
  server.once('exit', () => process.off('exit', killIt));
  let log = '';
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.once('exit', () => reject(new Error(`redis-server did not start:\n${log}`)));
    server.stdout.on('data', (chunk: Buffer) => {
      if (log.includes(ready)) return;
      log += chunk.toString();
      if (log.includes(ready)) resolve();
    });
  });
  const isRunning = () => server.exitCode === null && server.signalCode === null;
  return {
    pid: server.pid!,
    get isRunning() {
      return isRunning();
    },
    stop: async () => {
      if (!isRunning()) return;
      const exited = once(server, 'exit');
      server.kill('SIGKILL');
      await exited;
    },
  };
}
