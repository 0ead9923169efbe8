import { execFileSync } from 'node:child_process';
import { aptInstall } from '../apt-install.mjs';

/**
 * Jest's global set-up: these tests need a real redis-server. Finds it, or installs it where it may, or says what to
 * install.
 */
export default function redisServerInstalled() {
  if (aptInstall('redis-server', found)) return;
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
