// Runs everything in test/lab and test/processes, and the random schedules, at full size, and writes
// docs/reliability.md with the figures; goes on when something fails, and says so there. Words after it choose specs:
// "npm run lab -- sentinel"; then the figures are only shown.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { page } from './page.mjs';
import { endAll, runSpec } from './specs.mjs';

/**
 * What takes long and does not mind company runs at the same time; the others measure times, and have the machine for
 * themselves.
 */
const TOGETHER = [
  [
    ['test/lab/soak.spec.ts'],
    ['test/lab/refusals.spec.ts', 'test/lab/cluster-slots.spec.ts', 'test/lab/redlock-amnesia.spec.ts'],
  ],
  [['test/lab/sentinel-failover.spec.ts'], ['test/lab/lost-replies.spec.ts']],
];

const chosen = process.argv.slice(2);
const inFolders = ['test/lab', 'test/processes'].flatMap((folder) =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.spec.ts'))
    .map((name) => `${folder}/${name}`),
);
const all = [...inFolders, 'test/redis/schedules.spec.ts'];
const specs = chosen.length > 0 ? all.filter((spec) => chosen.some((word) => spec.includes(word))) : all;

const folder = mkdtempSync(join(tmpdir(), 'nest-redis-lock-lab-'));
process.on('exit', () => {
  endAll();
  rmSync(folder, { recursive: true, maxRetries: 3 });
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1));

const startedAt = performance.now();
const time = (sinceMs) => `${((performance.now() - sinceMs) / 60_000).toFixed(1)} min`;
const outcomes = new Map();

async function run(these) {
  for (const spec of these.filter((spec) => specs.includes(spec))) {
    const beganAt = performance.now();
    process.stderr.write(`\n== ${spec}\n`);
    const outcome = await runSpec(spec, folder);
    outcomes.set(spec, outcome);
    const result = outcome.failed.length > 0 ? `FAILED: ${outcome.failed.join('; ')}` : 'held';
    const progress = `${outcomes.size} of ${specs.length} after ${time(startedAt)}`;
    process.stderr.write(`== ${spec}: ${result}, ${time(beganAt)}; ${progress}\n`);
  }
}

for (const lanes of TOGETHER) await Promise.all(lanes.map(run));
await run(all.filter((spec) => !TOGETHER.flat(2).includes(spec)));

const inOrder = specs.map((spec) => outcomes.get(spec));
const failed = inOrder.flatMap((outcome) => outcome.failed);
const redis = /v=(\S+)/.exec(
  spawnSync(process.env.REDIS_SERVER ?? 'redis-server', ['--version'], { encoding: 'utf8' }).stdout,
)?.[1];
const machine =
  `on a shared ${cpus().length}-core machine, Node ${process.versions.node}, ` +
  `Redis ${redis} on loopback, in ${time(startedAt)}`;
const text = page(
  inOrder.flatMap(({ figures }) => figures),
  { failed, when: new Date().toISOString().slice(0, 10), machine },
);
if (chosen.length > 0) process.stdout.write(text);
else writeFileSync('docs/reliability.md', text);
process.exitCode = failed.length > 0 || specs.length === 0 ? 1 : 0;
