import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';

export interface RedisServer {
  readonly port: number;
  readonly ended: Promise<unknown>;
  /** Stops it for a while, as if it had vanished from the network. */
  pause(ms: number): void;
  stop(): Promise<void>;
}

/**
 * Starts the machine's own redis-server on a free port, with nothing written to disk. Returns null when there is none.
 */
export async function startRedisServer(): Promise<RedisServer | null> {
  const port = await freePort();
  const options = {
    '--bind': '127.0.0.1',
    '--port': String(port),
    '--save': '',
    '--appendonly': 'no',
    '--daemonize': 'no',
  };
  const redis = spawn('redis-server', Object.entries(options).flat(), { stdio: ['ignore', 'pipe', 'ignore'] });

  const ended = new Promise((resolve) => redis.once('exit', resolve).once('error', resolve));
  const isReady = await Promise.race([accepting(redis), ended.then(() => false)]);
  if (!isReady) return null;

  return {
    port,
    ended,
    pause: (ms) => {
      redis.kill('SIGSTOP');
      setTimeout(() => redis.kill('SIGCONT'), ms);
    },
    stop: async () => {
      redis.kill('SIGCONT');
      redis.kill();
      await ended;
    },
  };
}

function accepting(redis: ChildProcess): Promise<boolean> {
  return new Promise((resolve) => {
    let output = '';
    // Listens on after that too, or a full pipe would stop Redis.
    redis.stdout?.on('data', (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-1_000);
      if (output.includes('Ready to accept connections')) resolve(true);
    });
  });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
