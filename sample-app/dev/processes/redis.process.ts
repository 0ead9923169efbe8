import { startRedisServer } from './redis-server.js';
import { runProcess, type Running } from './run-process.js';
import type { ServiceReport } from './service-report.js';

// A process of its own, also for redis-server: it outlives a launcher that was killed just long enough to stop its
// Redis.
await runProcess(async () => (await runRedisServer()) ?? (await runEmbeddedRedis()));

async function runRedisServer(): Promise<Running<ServiceReport> | null> {
  const server = await startRedisServer();
  if (!server) return null;
  void server.ended.then(() => process.exit());
  return {
    report: { url: `redis://127.0.0.1:${server.port}`, name: 'redis-server of this machine' },
    stop: () => server.stop(),
  };
}

async function runEmbeddedRedis(): Promise<Running<ServiceReport>> {
  const { createRedisMock } = await import('js-redis-server');
  const server = await createRedisMock();
  return {
    report: { url: server.url, name: 'embedded Redis (there is no redis-server on PATH)' },
    stop: () => server.close(),
  };
}
