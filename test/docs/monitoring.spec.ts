import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { BUCKETS } from '../../lib/metrics/lock-instruments.js';
import { prometheusInstruments } from '../../lib/prometheus/prometheus-instruments.js';
import { Registry } from 'prom-client';

const FOLDER = 'docs/monitoring';
const files = readdirSync(FOLDER).map((name) => ({ name, text: readFileSync(`${FOLDER}/${name}`, 'utf8') }));

/** The names in a text that look like ours, and what queries select by. */
const metricsIn = (text: string): Set<string> => new Set(text.match(/nest_redis_lock_\w+/g));
const labelsIn = (text: string): Set<string> =>
  new Set([...text.matchAll(/(\w+)(?:=~|!=|=)\\?"/g)].map(([, label]) => label!));

/** The names of all time series of this library. */
async function series(): Promise<Set<string>> {
  const registry = new Registry();
  prometheusInstruments(registry);
  const metrics = await registry.getMetricsAsJSON();
  return new Set(
    metrics.flatMap(({ name, type }) =>
      String(type) === 'histogram' ? ['_bucket', '_count', '_sum'].map((ending) => name + ending) : [name],
    ),
  );
}

it('the dashboard and the alerts ask only for metrics and labels that exist', async () => {
  const known = await series();
  expect(files.map(({ name }) => name).sort()).toEqual(['alerts.yml', 'grafana-dashboard.json']);
  for (const { text } of files) {
    expect(metricsIn(text).size).toBeGreaterThan(3);
    expect([...metricsIn(text)].filter((name) => !known.has(name))).toEqual([]);
    expect([...labelsIn(text)].filter((label) => !['label', 'module', 'error_type', 'queued'].includes(label))).toEqual(
      [],
    );
  }
});

it('the dashboard has panels with different ids, each with a query and a place of its own', () => {
  interface Panel {
    readonly id: number;
    readonly title: string;
    readonly gridPos: { readonly x: number; readonly y: number };
    readonly targets: readonly { readonly expr: string }[];
  }
  const { text } = files.find(({ name }) => name.endsWith('.json'))!;
  const { panels, uid } = JSON.parse(text) as { panels: Panel[]; uid: string };
  expect(uid).toBe('nest-redis-lock');
  expect(panels.length).toBeGreaterThan(8);
  for (const of of [
    (panel: Panel) => String(panel.id),
    ({ gridPos: { x, y } }: Panel) => `${x},${y}`,
    ({ title }: Panel) => title,
  ])
    expect(new Set(panels.map(of)).size).toBe(panels.length);
  for (const { targets } of panels) expect(targets.every(({ expr }) => expr.includes('nest_redis_lock_'))).toBe(true);
});

it('what begins a time series is counted too, though it is no increase', () => {
  // An alert wakes somebody: a series that was not scraped for a while is not new.
  const before = (name: string, series: string, time: string) =>
    name.endsWith('.yml') ? `present_over_time(${series}[1d] offset ${time})` : `${series} offset ${time}`;
  for (const { name, text } of files) {
    const increases = [...text.matchAll(/\bincrease\((\w+(?:\{[^}]*\})?)\[([^\]]+)\]\)/g)];
    expect(increases.length).toBeGreaterThan(0);
    const inOneLine = text.replace(/\s+/g, ' ');
    for (const [, series, time] of increases)
      expect(inOneLine).toContain(`${series} unless ${before(name, series!, time!)}`);
  }
});

describe('The schema of Grafana', () => {
  const { text } = files.find(({ name }) => name.endsWith('.json'))!;
  const mistakes = [
    ['"showLegend": true,', ''],
    ['"displayMode": "table"', '"displayMode": "tables"'],
    ['"showPoints"', '"showPoint"'],
    ['"mode": "thresholds"', '"mode": "threshold"'],
    ['"gridPos": {', '"gridPos": { "width": 3,'],
  ] as const;
  let folder: string;
  /** What the compiler says of the dashboard, and of copies with one mistake each. */
  let output: string;

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'grafana-dashboard-'));
    const type = `import(${JSON.stringify(resolve('test/docs/grafana-dashboard.js'))}).WrittenDashboard`;
    const dashboards = [text, ...mistakes.map(([right, wrong]) => text.replace(right, wrong))];
    const sources = dashboards.map((json, at) => {
      const source = join(folder, `dashboard-${at}.ts`);
      writeFileSync(source, `export const dashboard: ${type} = ${json};`);
      return source;
    });
    const options = ['--noEmit', '--strict', '--skipLibCheck', '--ignoreConfig', '--module', 'nodenext'];
    output = spawnSync(resolve('node_modules/.bin/tsc'), [...options, ...sources], { encoding: 'utf8' }).stdout;
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const problems = (at: number) => output.split('\n').filter((line) => line.includes(`dashboard-${at}.ts(`));

  it('the dashboard has all that the schema of Grafana asks for, and nothing that it does not know', () => {
    expect(problems(0)).toEqual([]);
    expect(output.match(/error TS/g)).toHaveLength(mistakes.length);
  });

  it.each(mistakes.map(([right, wrong], at) => ({ right, wrong, at: at + 1 })))(
    'the schema finds $wrong instead of $right',
    ({ right, at }) => {
      expect(text).toContain(right);
      expect(problems(at)).toHaveLength(1);
    },
  );
});

it('the guide says what the buckets are', () => {
  expect([BUCKETS[0], BUCKETS.at(-1)]).toEqual([0.0005, 30 * 60]);
  expect(readFileSync('docs/guides/metrics-and-traces.md', 'utf8')).toContain('from 0.5 ms to 30 min');
});
