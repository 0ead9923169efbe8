import { Server } from 'node:net';
import { startRedisServer } from './redis-server.js';
import { runProcess, type Running } from './run-process.js';
import type { ServiceReport } from './service-report.js';

// A process of its own, also for redis-server: it outlives a launcher that was killed just long enough to stop its
// Redis.
await runProcess(async () => (await runRedisServer()) ?? (await runEmbeddedRedis()));

/** What the launcher may ask for: to take Redis away for a while. */
export interface RedisCommand {
  readonly pauseMs: number;
}

function onPause(pause: (ms: number) => void): void {
  process.on('message', (message) => {
    const { pauseMs } = message as Partial<RedisCommand>;
    if (pauseMs !== undefined) pause(pauseMs);
  });
}

async function runRedisServer(): Promise<Running<ServiceReport> | null> {
  const server = await startRedisServer();
  if (!server) return null;
  void server.ended.then(() => process.exit());
  onPause((ms) => server.pause(ms));
  return {
    report: { url: `redis://127.0.0.1:${server.port}`, name: 'redis-server of this machine' },
    stop: () => server.stop(),
  };
}

async function runEmbeddedRedis(): Promise<Running<ServiceReport>> {
  const { createRedisMock } = await import('js-redis-server');
  listenOnlyOnThisMachine();
  const server = await createRedisMock();
  onPause((ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms));
  return {
    report: { url: server.url, name: 'embedded Redis (there is no redis-server on PATH)' },
    stop: () => server.close(),
  };
}

/** js-redis-server would listen on all interfaces, and has no option for that. This process has no other server. */
function listenOnlyOnThisMachine(): void {
  const listen = Reflect.get(Server.prototype, 'listen') as (port: number, host: string) => Server;
  Object.assign(Server.prototype, {
    listen(this: Server, port: number) {
      return listen.call(this, port, '127.0.0.1');
    },
  });
}
