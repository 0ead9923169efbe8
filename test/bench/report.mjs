import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { lineUp } from './contenders/index.mjs';
import { pinnings } from './pinning.mjs';
import { redisVersion } from './redis.mjs';

const DOCUMENT = new URL('../../docs/performance.md', import.meta.url);

/** A scenario on the terminal, its tables aligned. */
export function print({ title, about, tables }) {
  console.log(`\n${title}\n${about}\n`.replaceAll('`', ''));
  for (const table of tables) {
    const [head, ...rows] = [table.head, ...table.rows].map((row) => row.map((cell) => cell.replaceAll('`', '')));
    const widths = head.map((cell, column) => Math.max(cell.length, ...rows.map((row) => row[column].length)));
    const line = (cells) =>
      cells.map((cell, column) => (column ? cell.padStart(widths[column]) : cell.padEnd(widths[column]))).join('  ');
    for (const row of [head, ...rows]) console.log(line(row));
    console.log();
  }
}

/** All scenarios as docs/performance.md. */
export async function write(scenarios) {
  const libraries = { head: ['library', 'options'], rows: await lineUp() };
  const sections = scenarios.map(
    ({ title, about, tables }) => `## ${title}\n\n${about}\n\n${tables.map(markdown).join('\n\n')}`,
  );
  const text = [INTRODUCTION, measured(), markdown(libraries), ...sections, LIMITS].join('\n\n');
  writeFileSync(DOCUMENT, `${text}\n`);
  console.log('\nWrote docs/performance.md');
}

function measured() {
  const when = new Date().toISOString().slice(0, 10);
  const where = `a shared ${availableParallelism()}-core machine, Node ${process.versions.node}, Redis ${redisVersion()} on loopback`;
  const pinned =
    pinnings.length > 1
      ? ''
      : ' It could not pin the processes to two cores, so the ratios wander more than they should.';
  return `Measured on ${when} on ${where}.${pinned}`;
}

function markdown({ head, rows }) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  const isNumber = (column) => /^[\d–✓✗]/.test(rows[0][column]);
  return [line(head), line(head.map((_, column) => (isNumber(column) ? '--:' : '---'))), ...rows.map(line)].join('\n');
}

const INTRODUCTION = `# How fast is it?

\`npm run bench\` writes this page; \`npm run bench -- uncontended\` runs one scenario, \`npm run bench -- --quick\` takes a short look.

**How it is measured.** Each figure is a ratio to a *floor*: what a careful person would write by hand for that scenario on the same Redis.
Each contender is a process of its own with one more \`AsyncLocalStorage\` in use, as real Nest apps have it, because that makes every await dearer,
and warms up first: the compiler needs some thousand sections. The contenders take turns, in a new order each round, and each round gives a ratio; the tables show the median of these ratios and, in
brackets, where four of five rounds lie. *Same core* has clients and server on one core, so nothing a client does can hide behind the server; *split* gives
them a core each. Commands are those that clients send, counted outside the timed rounds; commands inside a script cost no round trip and do
not count. The other libraries run with the options below: what their own pages advise, with waits set for fast retries.`;

const LIMITS = `## What this does not show

One Redis on the loopback interface of a small machine: no network but the simulated one, no cluster, no replicas, no TLS. Waking the other
core can take longer here than the whole lock, so *split* hides differences that *same core* shows, and absolute times say little about your servers; the
ratios carry over, the microseconds do not. The libraries do not promise the same things: some renew the lease and some do not, some give a
fence, some keep an order, and the BLPOP baton is lost for ever when its holder dies. Nothing here is about behaviour in a crash or an outage; the tests are.`;
