import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

/**
 * Jest's global set-up: these tests need a real redis-server. Finds it, or installs it where it may, or says what to
 * install.
 */
export default function redisServerInstalled() {
  if (found()) return;
  if (process.getuid?.() === 0 && existsSync('/usr/bin/apt-get')) {
    console.log('redis-server is not here: installing it with apt-get …');
    const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    const apt = (...args) => spawnSync('apt-get', ['-qq', ...args], { env, stdio: ['ignore', 'ignore', 'inherit'] });
    apt('update');
    apt('install', '-y', '--no-install-recommends', 'redis-server');
    if (found()) return;
  }
  throw new Error(
    'The tests need redis-server on the PATH: "sudo apt-get install redis-server", "brew install redis", ' +
      'or see https://redis.io/docs/install.',
  );
}

function found() {
  try {
    execFileSync(process.env.REDIS_SERVER ?? 'redis-server', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
