// Runs everything in test/lab and test/processes at full size, one after the other, and writes docs/reliability.md with the figures. Words
// after it choose specs: "npm run lab -- sentinel"; then the figures are only shown.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { page } from './page.mjs';

const chosen = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'nest-redis-lock-lab-'));
const figures = join(folder, 'figures.jsonl');
writeFileSync(figures, '');
try {
  const jest = ['--experimental-vm-modules', '--disable-warning=ExperimentalWarning', 'node_modules/jest/bin/jest.js'];
  const { status } = spawnSync(process.execPath, [...jest, ...(chosen.length > 0 ? chosen : ['test/lab', 'test/processes'])], {
    stdio: 'inherit',
    env: { ...process.env, LAB: 'long', LAB_FIGURES: figures },
  });
  process.exitCode = status ?? 1;
  const redis = /v=(\S+)/.exec(spawnSync('redis-server', ['--version'], { encoding: 'utf8' }).stdout)?.[1];
  const machine = `on a shared ${cpus().length}-core machine, Node ${process.versions.node}, Redis ${redis} on loopback`;
  const lines = readFileSync(figures, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));
  const text = page(lines, { passed: status === 0, when: new Date().toISOString().slice(0, 10), machine });
  if (chosen.length > 0) process.stdout.write(text);
  else writeFileSync('docs/reliability.md', text);
} finally {
  rmSync(folder, { recursive: true });
}
