import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { medianOf, short } from '../figures.mjs';
import { whyBoot } from '../misses.mjs';
import { roomiest, onCore } from '../pinning.mjs';
import { withRedis } from '../redis.mjs';
import { target, TARGET_HEAD } from '../targets.mjs';

const PROCESS = fileURLToPath(new URL('../boot-process.mjs', import.meta.url));
const run = promisify(execFile);
const DIST = new URL('../../../dist/', import.meta.url);
const FILES = ['nest-redis-lock.js', 'nest.js'];

/** What the module adds to the start of an app. */
export async function boot({ quick }) {
  const count = quick ? 5 : 25;
  const [empty, text, ours] = [[], [], []];
  const file = unusedText();
  await withRedis(roomiest.server, async ({ url }) => {
    for (let round = 0; round < count; round++) {
      empty.push(await started());
      text.push(await started('text', file));
      ours.push(await started(url));
    }
  });
  rmSync(dirname(file), { recursive: true });
  const textMs = medianOf(text, 'importMs');
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
          ['the text of the library, unused', short(textMs), '–'],
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
    why: whyBoot(textMs),
  };
}

async function started(what, text) {
  const [file, ...rest] = onCore(roomiest.clients, [process.execPath, PROCESS, ...(what ? [what] : [])]);
  return JSON.parse((await run(file, rest, { env: { ...process.env, BENCH_TEXT: text } })).stdout);
}

/** Writes the text of the library into a function that nobody calls: so Node reads it, and runs none of it. */
function unusedText() {
  const file = join(mkdtempSync(join(tmpdir(), 'bench-')), 'text.mjs');
  const texts = FILES.map((name) => readFileSync(new URL(name, DIST), 'utf8').replace(/^(import|export) .*$/gm, ''));
  writeFileSync(file, texts.map((text, at) => `export function unused${at}() {\n${text}\n}\n`).join(''));
  return file;
}
