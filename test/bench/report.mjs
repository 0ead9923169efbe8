import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { lineUp } from './contenders/index.mjs';
import { short } from './figures.mjs';
import { pinnings } from './pinning.mjs';
import { svg } from './plots.mjs';
import { redisVersion } from './redis.mjs';

const DOCUMENT = new URL('../../docs/performance.md', import.meta.url);
const IMAGES = new URL('../../docs/performance/', import.meta.url);

/** Prints a scenario on the terminal, with aligned tables. */
export function print({ title, about, tables, why }) {
  console.log(`\n${title}\n${about}\n`.replaceAll('`', ''));
  for (const table of tables) {
    const [head, ...rows] = [table.head, ...table.rows].map((row) => row.map((cell) => cell.replaceAll('`', '')));
    const widths = head.map((cell, column) => Math.max(cell.length, ...rows.map((row) => row[column].length)));
    const line = (cells) =>
      cells.map((cell, column) => (column ? cell.padStart(widths[column]) : cell.padEnd(widths[column]))).join('  ');
    for (const row of [head, ...rows]) console.log(line(row));
    console.log();
  }
  if (why) console.log(`${WHY} ${why}\n`.replaceAll('`', ''));
}

/** Writes all scenarios to docs/performance.md, and their plots beside it. */
export async function write(scenarios) {
  const libraries = { head: ['library', 'options'], rows: await lineUp() };
  const sections = scenarios.map(({ title, about, tables, why }) =>
    [`## ${title}`, about, ...tables.map(markdown), ...(why ? [`${WHY} ${why}`] : [])].join('\n\n'),
  );
  const images = scenarios.flatMap(({ plot }) => (plot ? [image(plot)] : []));
  const text = [TITLE, ...images, INTRODUCTION, measured(), markdown(libraries), ...sections, LIMITS].join('\n\n');
  writeFileSync(DOCUMENT, `${text}\n`);
  console.log('\nWrote docs/performance.md');
}

function image(plot) {
  mkdirSync(IMAGES, { recursive: true });
  writeFileSync(new URL(`${plot.file}.svg`, IMAGES), svg(plot));
  const values = plot.bars.map(({ name, value }) => `${name.replaceAll('`', '')} ${short(value)}`).join(', ');
  return `![${plot.title}. ${plot.about} ${values}.](performance/${plot.file}.svg)`;
}

function measured() {
  const when = new Date().toISOString().slice(0, 10);
  const where =
    `a shared ${availableParallelism()}-core machine, Node ${process.versions.node}, ` +
    `Redis ${redisVersion()} on loopback`;
  const pinned =
    pinnings.length > 1
      ? ''
      : ' The processes could not be pinned to two cores, so the ratios vary more than they should.';
  return `Measured on ${when} on ${where}.${pinned}`;
}

function markdown({ head, rows }) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  const isNumber = (column) => /^[\d–✓✗]/.test(rows[0][column]);
  return [line(head), line(head.map((_, column) => (isNumber(column) ? '--:' : '---'))), ...rows.map(line)].join('\n');
}

const WHY = '**Why does a figure miss its target?**';

const TITLE = '# How fast is it?';

const INTRODUCTION = `## How is it measured?

\`npm run bench\` writes this page. \`npm run bench -- uncontended\` runs one scenario; \`npm run bench -- --quick\` takes a short look.

Each figure is a ratio to a *floor*: what a careful person would write by hand for that scenario on the same Redis.

- Each contender is its own process. It has one more \`AsyncLocalStorage\` in use, as real Nest apps do, because that makes every await more expensive. It
  warms up first, because the compiler needs some thousand sections.
- The contenders take turns, in a new order each round. Each round gives a ratio. The tables show the median of these ratios and, in
  brackets, the range of four rounds out of five.
- *Same core* runs clients and server on one core, so nothing that a client does can hide behind the server. *Split* gives
  each of them a core.
- Commands are those that clients send, counted outside the timed rounds. Commands inside a script cost no round trip and do
  not count.
- The other libraries run with the options below: what their own pages advise, with waits set for fast retries.`;

const LIMITS = `## What does this not show?

One Redis on the loopback interface of a small machine: no network but the simulated one, no cluster, no replicas, no TLS. Waking the other
core can take longer here than the whole lock, so *split* hides differences that *same core* shows. Absolute times say little about your servers: the
ratios carry over, the microseconds do not.

The libraries do not promise the same things. Some renew the lease and some do not; some give a fence; some keep an order. The BLPOP baton is lost for ever when its holder dies.
Nothing here is about behaviour in a crash or an outage; the tests are.`;
