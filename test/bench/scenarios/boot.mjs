import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { medianOf, short } from '../figures.mjs';
import { roomiest, onCore } from '../pinning.mjs';
import { withRedis } from '../redis.mjs';
import { target, TARGET_HEAD } from '../targets.mjs';

const PROCESS = fileURLToPath(new URL('../boot-process.mjs', import.meta.url));
const run = promisify(execFile);

/** What the module adds to the start of an app. */
export async function boot({ quick }) {
  const count = quick ? 5 : 25;
  const [empty, ours] = [[], []];
  await withRedis(roomiest.server, async ({ url }) => {
    for (let round = 0; round < count; round++) {
      empty.push(await started());
      ours.push(await started(url));
    }
  });
  const importMs = medianOf(ours, 'importMs');
  const bootMs = medianOf(ours, 'bootMs') - medianOf(empty, 'bootMs');
  return {
    title: 'P10 Start of an app',
    about:
      `What importing the package and booting \`RedisLockModule\` add to an empty Nest app ` +
      'that has loaded Nest, RxJS and ioredis. ' +
      `Medians of ${count} new processes.`,
    tables: [
      {
        head: ['', 'import, ms', 'boot, ms'],
        rows: [
          ['an empty app', '–', short(medianOf(empty, 'bootMs'))],
          ['with `RedisLockModule`', short(importMs), short(medianOf(ours, 'bootMs'))],
        ],
      },
      {
        head: TARGET_HEAD,
        rows: [
          target({
            what: 'import and boot over the empty app',
            value: importMs + bootMs,
            solid: 30,
            goal: 15,
            unit: ' ms',
          }),
        ],
      },
    ],
  };
}

async function started(...args) {
  const [file, ...rest] = onCore(roomiest.clients, [process.execPath, PROCESS, ...args]);
  return JSON.parse((await run(file, rest)).stdout);
}
