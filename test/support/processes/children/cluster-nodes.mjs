// Runs the nodes of a Redis Cluster in a folder of their own, and ends them and the folder with the parent, however
// that ends. Gets [{ port, config }], answers with the pids when all accept connections. One that died is
// started again with its port.
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folder = mkdtempSync(join(tmpdir(), 'nest-redis-lock-cluster-'));
const servers = [];

const nodes = new Map();

function create({ port, config }) {
  const dir = join(folder, String(port));
  mkdirSync(dir);
  writeFileSync(join(dir, 'nodes.conf'), config);
  nodes.set(port, { port, dir });
  return launch(port);
}

function launch(which) {
  const { port, dir } = nodes.get(which);
  const options = {
    'port': port, 'bind': '127.0.0.1', 'dir': dir, 'save': '', 'appendonly': 'no', 'daemonize': 'no',
    'cluster-enabled': 'yes', 'cluster-announce-ip': '127.0.0.1', 'cluster-node-timeout': 2000,
    'cluster-require-full-coverage': 'no', 'repl-diskless-sync': 'yes', 'repl-diskless-sync-delay': 0,
  }; // prettier-ignore
  const server = spawn(
    process.env.REDIS_SERVER ?? 'redis-server',
    Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]),
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  servers.push(server);
  return new Promise((resolve, reject) => {
    let log = '';
    server.once('exit', () => reject(new Error(`redis-server did not start:\n${log}`)));
    server.once('error', reject);
    server.stdout.on('data', (chunk) => {
      if (log.includes('Ready to accept connections')) return;
      log += chunk;
      if (log.includes('Ready to accept connections')) resolve(server.pid);
    });
  });
}

process.on('exit', () => {
  for (const server of servers) server.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
});
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => process.exit());
process.on('disconnect', () => process.exit());
process.on('message', async (message) =>
  process.send(await Promise.all([message].flat().map(message.length ? create : launch))),
);
