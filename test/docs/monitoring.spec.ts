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

/** Prometheus itself runs the rules, where its `promtool` is installed: Debian's package `prometheus`. */
const runsRules = spawnSync('promtool', ['--version']).status === 0;

(runsRules ? describe : describe.skip)('The alert LocksUnavailable', () => {
  const FAILED = 'nest_redis_lock_acquire_duration_seconds_count{label="pay-out",error_type="unavailable"';
  const FIRED = 'count(count_over_time(ALERTS{alertname="LocksUnavailable", alertstate="firing"}[1d]))';
  /** All times are in seconds. Scrapes are at multiples of this one. */
  const STEP = 15;
  const START = 1200;
  const END = 3600;

  interface Process {
    /** When its calls fail, after the start. */
    readonly failures: readonly number[];
    readonly scraped: { readonly every: number; readonly after?: number };
    /** How many calls have failed long before. Without any, the first failure begins the series. */
    readonly earlier?: number;
  }

  /** What Prometheus gets of a process; `_` is nothing. */
  function samples({ failures, scraped: { every, after = 0 }, earlier = 0 }: Process): string {
    const times = Array.from({ length: END / STEP }, (_, at) => at * STEP);
    return times
      .map((time) => {
        const count = earlier + failures.filter((failure) => START + failure < time).length;
        return count > 0 && (time - after) % every === 0 ? count : '_';
      })
      .join(' ');
  }

  /** Whether the alert has fired by then. Prometheus evaluates it each minute, which is its default. */
  function firedBy(time: number, processes: readonly Process[]): boolean {
    const test = {
      rule_files: [resolve(FOLDER, 'alerts.yml')],
      evaluation_interval: '1m',
      tests: [
        {
          interval: `${STEP}s`,
          input_series: processes.map((process, at) => ({
            series: `${FAILED},instance="${at}"}`,
            values: samples(process),
          })),
          promql_expr_test: [{ expr: FIRED, eval_time: `${time}s`, exp_samples: [] }],
        },
      ],
    };
    const folder = mkdtempSync(join(tmpdir(), 'alert-rules-'));
    try {
      writeFileSync(join(folder, 'test.json'), JSON.stringify(test));
      const { status, output } = spawnSync('promtool', ['test', 'rules', join(folder, 'test.json')], {
        encoding: 'utf8',
      });
      const fired = output.join('').includes('got: {} 1E+00');
      if (status !== 0 && !fired) throw new Error(output.join(''));
      return fired;
    } finally {
      rmSync(folder, { recursive: true });
    }
  }

  const cases = [15, 30, 60].flatMap((every) => [0, 3].map((earlier) => ({ every, earlier })));

  describe.each(cases)('with a scrape each $every s, of processes in which $earlier calls failed before', (given) => {
    const { every, earlier } = given;
    const inPhase = { every };
    const outOfPhase = { every, after: every - STEP };

    it.each([
      { what: 'at one moment', first: Array<number>(10).fill(-1), second: Array<number>(10).fill(-1) },
      { what: 'within three quarters of a minute', first: [-1], second: [46] },
    ])('does not fire for calls of two processes that fail $what', ({ first, second }) => {
      const processes = [
        { failures: first, scraped: inPhase, earlier },
        { failures: second, scraped: outOfPhase, earlier },
      ];
      expect(firedBy(END, processes)).toBe(false);
    });

    it.each([
      { what: 'each minute', failures: [1, 61, 121, 181, 241, 301] },
      { what: 'about each minute, so that some scrapes see none', failures: [1, 50, 104, 170, 224, 290] },
      { what: 'each second', failures: Array.from({ length: 301 }, (_, second) => second) },
    ])('fires when calls fail $what, for five minutes', ({ failures }) => {
      expect(firedBy(START + 7 * 60, [{ failures, scraped: outOfPhase, earlier }])).toBe(true);
    });

    it('fires when calls fail each minute, for five minutes, each in another process', () => {
      const processes = [1, 61, 121, 181, 241, 301].map((at) => ({ failures: [at], scraped: outOfPhase, earlier }));
      expect(firedBy(START + 7 * 60, processes)).toBe(true);
    });
  });
});

it('the guide says what the buckets are', () => {
  expect([BUCKETS[0], BUCKETS.at(-1)]).toEqual([0.0005, 30 * 60]);
  expect(readFileSync('docs/guides/metrics-and-traces.md', 'utf8')).toContain('from 0.5 ms to 30 min');
});
