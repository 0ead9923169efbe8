import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';

export interface RedisServer {
  readonly port: number;
  readonly url: string;
  readonly pid: number;
  /** Kills it without a goodbye. */
  kill(): Promise<void>;
  /** Starts it again on its port, empty. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a real, empty redis-server of its own on a free port of the loopback interface; `more` are options such as `--maxclients`. */
export async function startRedis(...more: string[]): Promise<RedisServer> {
  const port = await freePort();
  let server = await launch(port, more);
  const end = async (signal: NodeJS.Signals) => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const exited = once(server, 'exit');
    server.kill(signal);
    await exited;
  };
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    get pid() {
      return server.pid!;
    },
    kill: () => end('SIGKILL'),
    stop: () => end('SIGKILL'),
    restart: async () => {
      await end('SIGKILL');
      server = await launch(port, more);
    },
  };
}

async function launch(port: number, more: readonly string[]): Promise<ChildProcess> {
  const options = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--daemonize', 'no', ...more];
  const server = spawn('redis-server', options, { stdio: ['ignore', 'pipe', 'inherit'] });
  const killIt = () => server.kill('SIGKILL');
  process.once('exit', killIt);
  server.once('exit', () => process.off('exit', killIt));
  let log = '';
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.once('exit', () => reject(new Error(`redis-server did not start:\n${log}`)));
    server.stdout.on('data', (chunk: Buffer) => {
      log += chunk.toString();
      if (log.includes('Ready to accept connections')) resolve();
    });
  });
  return server;
}

/** Finds a port that nobody uses, below those that the system gives to clients: one of them could have it before a server does. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 20_000);
    const probe = createServer().listen(port, '127.0.0.1');
    const isFree = await once(probe, 'listening').then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    probe.close();
    await once(probe, 'close');
    return port;
  }
}
