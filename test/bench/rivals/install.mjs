import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));

/** Installs the other libraries beside this file, once, in the exact versions of the lock file. */
export function installRivals() {
  if (existsSync(`${FOLDER}/node_modules/.package-lock.json`)) return;
  console.log('Installing the libraries to compare with …');
  const { status } = spawnSync('npm', ['ci', '--prefix', FOLDER, '--no-audit', '--no-fund', '--loglevel', 'error'], {
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error('npm ci failed; "npm ci --prefix test/bench/rivals" shows why');
}
