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
    for (const [, series, time] of text.matchAll(/\bmax_over_time\((\w+(?:\{[^}]*\})?)\[([^\]]+)\]\)/g)) {
      const last = `last_over_time(${series}[${time}])`;
      const beginnings = [
        `abs( ${last} - last_over_time(${series}[1d] offset ${time}) ) <`,
        `${series} offset ${time}`,
      ];
      expect(beginnings.some((before) => inOneLine.includes(`${last} unless ${before}`))).toBe(true);
    }
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
  const CALLS = 'nest_redis_lock_acquire_duration_seconds';
  const FIRING = 'ALERTS{alertname="LocksUnavailable", alertstate="firing"}';
  /** All times are in seconds. Scrapes are at multiples of this one. */
  const STEP = 15;
  const START = 7200;
  const END = START + 2400;
  const HOUR = 3600;

  interface Process {
    /** When its calls fail, after the start. */
    readonly failures: readonly number[];
    /** When Redis answers its calls, and how, unless they get their lock. */
    readonly answers?: readonly number[];
    readonly answer?: 'busy';
    /** The app that it is a process of, if it is another one. */
    readonly job?: string;
    readonly scraped: {
      readonly every: number;
      readonly after?: number;
      /** From when until when it is not scraped, after the start. */
      readonly except?: readonly [from: number, to: number];
    };
    /** How many calls have failed long before, and were answered. Without any, the first call begins the series. */
    readonly earlier?: number;
    /** When it starts again, and counts from 0. */
    readonly restarts?: readonly number[];
    /** When it ends. Another process that takes its place has series of its own. */
    readonly ends?: number;
    /** Whether it has workers, whose sums are added in another order each time: floating-point numbers differ by that. */
    readonly hasWorkers?: boolean;
  }

  /** What Prometheus gets of calls of a process until then: how many, or how long they took. `_` is nothing. */
  function samples(calls: readonly number[], process: Process, until: number, of: 'count' | 'sum'): string {
    const { every, after = 0, except: [from, to] = [0, 0] } = process.scraped;
    const { earlier = 0, restarts = [], ends = Infinity, hasWorkers = false } = process;
    const times = Array.from({ length: until / STEP + 1 }, (_, at) => at * STEP);
    return times
      .map((time) => {
        const isInGap = time > START + from && time < START + to;
        if ((time - after) % every !== 0 || isInGap) return '_';
        if (time > START + ends) return 'stale';
        const restart = Math.max(-Infinity, ...restarts.filter((restart) => START + restart < time));
        const before = restart === -Infinity ? earlier : 0;
        const counted = calls.filter((call) => START + call < time && call > restart);
        const count = before + counted.length;
        // Prometheus marks what has gone since the scrape before.
        if (count === 0) return restart === -Infinity ? '_' : 'stale';
        // Each call takes a time of its own.
        const sum = before + counted.reduce((total, call) => total + 1 + Math.abs(call) / 1e6, 0);
        const rounded = hasWorkers && Math.floor(time / every) % 2 === 1 ? sum * (1 + Number.EPSILON) : sum;
        return of === 'count' ? count : rounded;
      })
      .join(' ');
  }

  function seriesOf(process: Process, at: number, until: number): { series: string; values: string }[] {
    const { failures, answers = [], answer, job = 'bank' } = process;
    const kinds = [
      { errorType: ',error_type="unavailable"', calls: failures },
      { errorType: answer ? `,error_type="${answer}"` : '', calls: answers },
    ];
    return kinds
      .filter(({ calls }) => calls.length > 0)
      .flatMap(({ errorType, calls }) =>
        (['count', 'sum'] as const).map((of) => ({
          series: `${CALLS}_${of}{label="pay-out"${errorType},instance="${at}",job="${job}"}`,
          values: samples(calls, process, until, of),
        })),
      );
  }

  /** Whether the alert fires by then. Prometheus evaluates it each minute, which is its default. */
  function firedBy(time: number, processes: readonly Process[], since = 0): boolean {
    const fired = `count(count_over_time(${FIRING}[${time - since}s]))`;
    const test = {
      rule_files: [resolve(FOLDER, 'alerts.yml')],
      evaluation_interval: '1m',
      tests: [
        {
          interval: `${STEP}s`,
          input_series: processes.flatMap((process, at) => seriesOf(process, at, time)),
          promql_expr_test: [{ expr: fired, eval_time: `${time}s`, exp_samples: [] }],
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

  /** The times from one to another. */
  const each = (seconds: number, from: number, to: number): number[] =>
    Array.from({ length: Math.ceil((to - from) / seconds) }, (_, at) => from + at * seconds);

  const cases = [15, 30, 60].flatMap((every) => [0, 3].map((earlier) => ({ every, earlier })));

  describe.each(cases)('with a scrape each $every s, of processes that called $earlier times before', (given) => {
    const { every, earlier } = given;
    const inPhase = { every };
    const outOfPhase = { every, after: every - STEP };

    it.each([
      { what: 'at one moment', first: Array<number>(10).fill(-1), second: Array<number>(10).fill(-1) },
      { what: 'within three quarters of a minute', first: [-1], second: [46] },
      { what: 'for three quarters of a minute', first: each(3, -1, 47), second: each(3, -1, 47) },
    ])('does not fire for calls of two processes that fail $what, and are answered again', ({ first, second }) => {
      const answers = each(3, 48, END - START);
      const processes = [
        { failures: first, answers, scraped: inPhase, earlier },
        { failures: second, answers, scraped: outOfPhase, earlier },
      ];
      expect(firedBy(END, processes)).toBe(false);
    });

    it('does not fire when Redis answers that a key is busy, after calls that failed for a moment', () => {
      const failures = each(10, 0, 40);
      const answers = each(10, 40, 2 * HOUR);
      expect(firedBy(START + 2 * HOUR, [{ failures, answers, answer: 'busy', scraped: outOfPhase, earlier }])).toBe(
        false,
      );
    });

    it.each([
      { what: 'each minute', failures: [1, 61, 121, 181, 241, 301] },
      { what: 'about each minute, so that some scrapes see none', failures: [1, 50, 104, 170, 224, 290] },
      { what: 'each second', failures: Array.from({ length: 301 }, (_, second) => second) },
    ])('fires when calls fail $what, for five minutes', ({ failures }) => {
      const answers = each(1, -300, 0);
      expect(firedBy(START + 7 * 60, [{ failures, answers, scraped: outOfPhase, earlier }])).toBe(true);
    });

    it('fires when calls fail each minute, for five minutes, each in another process', () => {
      const answers = each(1, -300, 0);
      const processes = [1, 61, 121, 181, 241, 301].map((at) => ({
        failures: [at],
        answers,
        scraped: outOfPhase,
        earlier,
      }));
      expect(firedBy(START + 7 * 60, processes)).toBe(true);
    });

    it.each([
      { what: 'each 10 minutes', period: 600 },
      { what: 'each hour', period: HOUR },
    ])('fires for a job $what within 75 minutes after its last call that was answered', ({ period }) => {
      const processes = [{ failures: each(period, 7, 2 * HOUR), answers: [7 - period], scraped: outOfPhase, earlier }];
      expect(firedBy(START - period + 75 * 60, processes)).toBe(true);
      // It goes on until the next call.
      expect(firedBy(START + 2 * HOUR, processes, START + 2 * HOUR - 60)).toBe(true);
    });

    it('fires for a job each 10 minutes that has never been answered', () => {
      const processes = [{ failures: each(600, 7, HOUR), scraped: outOfPhase, earlier }];
      expect(firedBy(START + 10 * 60, processes)).toBe(true);
    });

    it('fires no more when the next call of a job each 10 minutes is answered', () => {
      const processes = [{ failures: [7], answers: each(600, 607, 2 * HOUR), scraped: outOfPhase, earlier }];
      expect(firedBy(START + 2 * HOUR, processes, START + 607 + every + 60)).toBe(false);
    });

    it('does not fire for a job each hour that starts again, fails, and is answered at once when it tries again', () => {
      const processes = [{ failures: [7], answers: [7 - HOUR, 30], restarts: [-1800], scraped: outOfPhase, earlier }];
      expect(firedBy(START + HOUR - 300, processes)).toBe(false);
    });

    it('fires for a job each hour that failed some hours ago, starts again, and fails', () => {
      const job = { failures: [7 - 1.9 * HOUR, 7], answers: [7 - HOUR], restarts: [-1800] };
      expect(firedBy(START - HOUR + 75 * 60, [{ ...job, scraped: outOfPhase, earlier }], START)).toBe(true);
    });

    it('fires when calls fail each minute, for five minutes, in a process that starts again after each', () => {
      const process = { failures: each(60, 1, 420), answers: each(1, -300, 0), restarts: each(60, 50, 420) };
      expect(firedBy(START + 7 * 60, [{ ...process, scraped: outOfPhase, earlier }])).toBe(true);
    });

    it('does not fire after first calls that fail, and are answered at last, when the process is replaced', () => {
      const calls = { failures: [7, 37], answers: [67] };
      expect(firedBy(START + 2 * HOUR, [{ ...calls, ends: 660, scraped: outOfPhase }])).toBe(false);
      expect(firedBy(START + 2 * HOUR, [{ ...calls, restarts: [-600, 660], scraped: outOfPhase, earlier }])).toBe(
        false,
      );
    });

    it('fires when calls fail for some minutes, each in a new process that ends soon, though others are answered', () => {
      const processes = each(90, 0, 540).map((at) => ({ failures: [at + 5], ends: at + 75, scraped: outOfPhase }));
      const other = { failures: [], answers: each(7, -300, 540), scraped: outOfPhase, earlier };
      expect(firedBy(START + 540, [...processes, other])).toBe(true);
    });

    it.each([
      { what: 'each 5 minutes', period: 300 },
      { what: 'each hour', period: HOUR },
    ])('fires for a job $what that is a new process each time', ({ period }) => {
      const processes = each(period, 0, 2 * HOUR).map((at) => ({
        failures: [at + 10],
        ends: at + 120,
        scraped: outOfPhase,
      }));
      expect(firedBy(START + 10 * 60, processes)).toBe(true);
      expect(firedBy(START + 2 * HOUR, processes, START + 2 * HOUR - 60)).toBe(true);
    });

    it('does not fire when new processes that end soon fail for a moment, and the next are answered', () => {
      const processes = each(90, -360, 2400).map((at) => {
        const calls = each(7, at + 5, at + 75);
        const [failures, answers] = [true, false].map((fails) => calls.filter((t) => (t > 0 && t < 60) === fails));
        return { failures: failures!, answers: answers!, ends: at + 85, scraped: outOfPhase };
      });
      expect(firedBy(END, processes)).toBe(false);
    });

    it('does not fire when processes start again and again after calls that failed for a moment', () => {
      const answers = [...each(7, -300, 0), ...each(7, 41, END - START)];
      const restarts = each(240, 241, END - START);
      const processes = [inPhase, outOfPhase].map((scraped) => ({
        failures: each(7, 1, 41),
        answers,
        restarts,
        scraped,
      }));
      expect(firedBy(END, processes)).toBe(false);
    });

    it('does not fire for calls that failed some hours ago, of a process that was not scraped for a while', () => {
      const scraped = { ...outOfPhase, except: [-2400, 0] as const };
      expect(firedBy(END, [{ failures: [7 - 1.9 * HOUR], scraped, earlier }], START)).toBe(false);
    });

    it('does not fire for calls that failed some hours ago, of a process that has workers', () => {
      const process = { failures: [7 - 1.9 * HOUR], answers: [8 - 1.9 * HOUR], hasWorkers: true };
      expect(firedBy(END, [{ ...process, scraped: outOfPhase, earlier }])).toBe(false);
    });

    it('fires for a job each hour of a process that has workers', () => {
      const process = { failures: each(HOUR, 7, 2 * HOUR), answers: [7 - HOUR], hasWorkers: true };
      expect(firedBy(START - HOUR + 75 * 60, [{ ...process, scraped: outOfPhase, earlier }])).toBe(true);
    });

    it('fires for a job each hour though another app is answered', () => {
      const jobs = [
        { job: 'billing', failures: each(HOUR, 7, 2 * HOUR) },
        { job: 'shop', failures: [], answers: each(30, 7 - HOUR, 2 * HOUR) },
      ];
      const processes = jobs.map((job) => ({ ...job, scraped: outOfPhase, earlier }));
      expect(firedBy(START + 75 * 60, processes)).toBe(true);
    });

    it('does not fire for one call of a job each 10 minutes that fails between others', () => {
      const answers = [...each(600, 7 - HOUR, 7), ...each(600, 607, 2 * HOUR)];
      expect(firedBy(START + 2 * HOUR, [{ failures: [7], answers, scraped: outOfPhase, earlier }])).toBe(false);
    });
  });
});

it('the guide says what the buckets are', () => {
  expect([BUCKETS[0], BUCKETS.at(-1)]).toEqual([0.0005, 30 * 60]);
  expect(readFileSync('docs/guides/metrics-and-traces.md', 'utf8')).toContain('from 0.5 ms to 30 min');
});
