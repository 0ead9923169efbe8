// npm run bench                  every scenario, about 40 minutes, and writes docs/performance.md
// npm run bench -- uncontended   one scenario (or several), with full rounds; nothing is written
// npm run bench -- --quick       few rounds: shows that it runs, and roughly where we stand
// BENCH_LIB=/path/to/dist/index.js measures another build of the library.
// BENCH_OTHER=dist-before/index.js npm run bench -- events   measures another build beside this one.
// Such a build lies within this folder, so that both use the same NestJS.
import { loadavg } from 'node:os';
import { performance } from 'node:perf_hooks';
import redisServerInstalled from '../support/redis/redis-server-installed.mjs';
import { print, write } from './report.mjs';
import { installRivals } from './rivals/install.mjs';
import { boot } from './scenarios/boot.mjs';
import { durability } from './scenarios/durability.mjs';
import { events } from './scenarios/events.mjs';
import { hotKeyProcesses } from './scenarios/hot-key-processes.mjs';
import { hotKey } from './scenarios/hot-key.mjs';
import { page } from './scenarios/page.mjs';
import { redlock } from './scenarios/redlock.mjs';
import { throughput } from './scenarios/throughput.mjs';
import { uncontended } from './scenarios/uncontended.mjs';
import { watchdog } from './scenarios/watchdog.mjs';

const SCENARIOS = {
  uncontended,
  throughput,
  'hot-key': hotKey,
  'hot-key-processes': hotKeyProcesses,
  watchdog,
  redlock,
  durability,
  events,
  boot,
  page,
};

const quick = process.argv.includes('--quick');
const asked = process.argv.slice(2).filter((argument) => argument !== '--quick');
const unknown = asked.find((name) => !Object.hasOwn(SCENARIOS, name));
if (unknown) {
  console.error(`There is no scenario "${unknown}". There are: ${Object.keys(SCENARIOS).join(', ')}; and --quick.`);
  process.exit(1);
}

redisServerInstalled();
installRivals();
const [load] = loadavg();
if (load > 1)
  console.log(
    `This machine is busy (load ${load.toFixed(1)}), so the figures will wander; ` +
      '"the floor again" of uncontended shows how far.',
  );
const results = [];
for (const name of asked.length ? asked : Object.keys(SCENARIOS)) {
  const began = performance.now();
  console.log(`\n${name} …`);
  const result = await SCENARIOS[name]({ quick });
  print(result);
  console.log(`(${Math.round((performance.now() - began) / 1000)} s)`);
  results.push(result);
}
if (!asked.length && !quick && !process.env.BENCH_LIB) await write(results);
