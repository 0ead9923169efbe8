import { describe, expect, it } from '@jest/globals';
import { Activity } from '../../lib/page/activity/activity.js';
import { Histogram } from '../../lib/page/activity/histogram.js';
import { HotKeys } from '../../lib/page/activity/hot-keys.js';
import { KeyHistory } from '../../lib/page/activity/key-history.js';
import { LabelTimes } from '../../lib/page/activity/label-times.js';
import { LeaseMargins } from '../../lib/page/activity/lease-margins.js';
import { Reporter } from '../../lib/page/activity/report.js';
import { RollingSum } from '../../lib/page/activity/rolling-sum.js';
import type { SentTimes } from '../../lib/page/activity/process-report.js';
import { TimesBook } from '../../lib/page/view/times-book.js';
import { circlesOf } from '../../lib/page/view/circles.js';
import { readCalls } from '../../lib/page/view/read-calls.js';
import { readReport } from '../../lib/page/view/read-report.js';
import { waitGraphOf, type GraphCall } from '../../lib/page/view/wait-graph.js';

/** Most characters of an answer to another process. */
const LONGEST_ANSWER = 100_000;

describe('What a process keeps for the page', () => {
  it('quantiles are within 10 % of the true ones, from 0.1 ms to an hour, and histograms add up', () => {
    const [one, other] = [new Histogram(), new Histogram()];
    const durations = Array.from({ length: 1000 }, (_, at) => 0.1 * 36_000_000 ** (at / 999));
    durations.forEach((ms, at) => (at % 2 ? one : other).add(ms));
    const sum = new Histogram();
    for (const part of [one, other]) sum.addCounts(part.toSparse(), part.sum);
    for (const share of [0.01, 0.5, 0.99, 1]) {
      const exact = durations[Math.ceil(share * 1000) - 1]!;
      expect(Math.abs(sum.quantile(share)! / exact - 1)).toBeLessThan(0.1);
    }
    expect(sum.count).toBe(1000);
    expect(sum.sum).toBeCloseTo(
      durations.reduce((a, b) => a + b),
      0,
    );
    expect(new Histogram().quantile(0.5)).toBeNull();
  });

  it('a histogram takes any duration, and ignores buckets that it does not have', () => {
    const histogram = new Histogram();
    for (const ms of [0, -1, 1e12]) histogram.add(ms);
    histogram.addCounts([5000, 3, -1, 2, 0.5, 1], 0);
    expect(histogram.count).toBe(3);
  });

  it('a rolling sum forgets what is older than its steps', () => {
    const sum = new RollingSum(1_000, 10);
    for (let second = 0; second < 20; second++) sum.add(5, second * 1_000);
    expect(sum.sum(19_000)).toBe(50);
    expect(sum.perSecond(19_999)).toBeCloseTo(5, 1);
    expect(sum.sum(24_500)).toBe(25);
    expect(sum.sum(1e9)).toBe(0);
  });

  it('labels beyond fifty count as other, until one of them has been silent for ten minutes', () => {
    const times = new LabelTimes();
    for (let label = 0; label < 60; label++) times.at(`label ${label}`, 0).timeouts++;
    const labels = times.inSlot(0);
    expect(labels).toHaveLength(51);
    expect(labels.find(([label]) => label === 'other')![1][1]).toBe(10);
    times.at('late', 600_001).timeouts++;
    expect(times.inSlot(60).map(([label]) => label)).toEqual(['late']);
  });

  it('the keys that are waited for most are hottest; cold keys cost no memory', () => {
    const keys = new HotKeys();
    for (let at = 0; at < 20_000; at++) {
      keys.of(`cold:${at}`, 0).acquired++;
      keys.of('busy', 0).acquired++;
      if (at % 100 === 0) keys.of('contended', 0).waitedMs += 10;
    }
    const top = keys.top(2, 0, () => true).map(([key, counts]) => [key, counts.acquired, counts.waitedMs]);
    expect(top).toEqual([
      ['contended', 0, 2_000],
      ['busy', 20_000, 0],
    ]);
    expect(keys.top(100_000, 0, () => true).length).toBeLessThanOrEqual(512);
    expect(keys.top(5, 300_000, () => true)).toEqual([]);
  });

  it('a key keeps its last events for a while, and notable ones for longer', () => {
    const history = new KeyHistory<{ at: number }>();
    for (let at = 0; at < 20; at++) history.add('a', { at }, at === 0);
    expect(history.of('a').map(({ at }) => at)).toEqual([19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 0]);
    for (let at = 20; at < 1_100; at++) history.add(`other ${at}`, { at }, false);
    expect(history.of('a').map(({ at }) => at)).toEqual([0]);
    expect(history.of('other 1099')).toEqual([{ at: 1_099 }]);
  });

  it('the smallest margin of a lease is that of the last minute or two', () => {
    const margins = new LeaseMargins();
    expect(margins.smallest(0)).toBeUndefined();
    margins.add(5_000, 30_000, 0);
    margins.add(20_000, 30_000, 0);
    expect(margins.smallest(59_000)).toEqual({ ms: 5_000, shareOfLease: 5 / 30 });
    margins.add(10_000, 30_000, 61_000);
    expect(margins.smallest(119_000)).toMatchObject({ ms: 5_000 });
    expect(margins.smallest(121_000)).toMatchObject({ ms: 10_000 });
    expect(margins.smallest(1e6)).toBeUndefined();
  });

  it('the loss and the history of a lock have its trace', () => {
    const activity = new Activity();
    const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
    const call = { id: 1, keys: ['a'], label: 'x', method: undefined, template: undefined, mode: 'exclusive' as const };
    const lock = { ...call, fence: 1, nested: false };
    const traceparent = `00-${traceId}-00f067aa0ba902b7-01`;
    activity.next({ ...lock, waitedMs: 1, remainingMs: 1_000, traceparent, type: 'acquired' });
    const report = () => new Reporter(activity, 'api:1').report({ filters: ['577b3'], keys: ['a'], slotsFrom: 0 });
    activity.next({ ...lock, heldMs: 5, type: 'lost', reason: 'expired', forced: undefined, token: undefined });
    expect(report().byFilter[0]).toMatchObject({ losses: [{ traceId }] });
    expect(report().histories[0]!.map(({ type, traceId: id }) => [type, id])).toEqual([
      ['lost', traceId],
      ['acquired', traceId],
    ]);
  });

  it('a report fits into one message, however much there is', () => {
    const activity = new Activity();
    for (let id = 1; id <= 1_000; id++) {
      const call = {
        ...{ id, keys: [`account:${'ä'.repeat(200)}:${id}`], label: `label ${id % 70}`, method: undefined },
        ...{ template: undefined, mode: 'exclusive' as const, fence: id, nested: false },
      };
      activity.next({ ...call, waitedMs: id, remainingMs: 1_000, traceparent: undefined, type: 'acquired' });
      activity.next({ ...call, heldMs: 5, type: 'lost', reason: 'expired', forced: undefined, token: undefined });
    }
    const reporter = new Reporter(activity, 'api-3:4711');
    const filters = ['', 'label 3', 'API-3'.toLowerCase(), 'nowhere', 'y', 'z', 'v', 'w'];
    const json = JSON.stringify(reporter.report({ filters, keys: ['a', 'b'], slotsFrom: 0 }));
    expect(json.length).toBeLessThan(LONGEST_ANSWER);
    const report = readReport(JSON.parse(json));
    expect(report).toMatchObject({ lostByReason: { expired: 1_000 } });
    const [all, , byProcess, none] = report.byFilter;
    expect(all!.losses.length).toBeGreaterThan(5);
    expect(byProcess!.losses).toHaveLength(all!.losses.length);
    expect(none).toEqual({ hotKeys: [], losses: [] });
  });

  it.each([
    null,
    0,
    'x',
    [],
    { byFilter: [null, { losses: 3 }], times: { labels: [[1, 'x'], null] }, lostByReason: 3 },
  ])('a report that another client has published, such as %j, does no harm', (report) => {
    expect(readReport(report)).toMatchObject({ acquiredPerSecond: 0, histories: [], uptimeMs: 0 });
    expect(readCalls(report)).toMatchObject({ held: 0, waiting: 0, byText: [], nested: [] });
  });
});

describe('The times of several processes', () => {
  const sent = (...numbers: number[]): SentTimes => ({
    from: numbers[0]!,
    labels: numbers.map((number) => ['a', [number, 0, 0, 0, 0, 1, [20, 1], 1, [20, 1]]] as const),
  });

  it('slots that were missed while nobody looked are asked for, until all are known', () => {
    const times = new TimesBook();
    const at = (slot: number): number => slot * 10_000;
    times.noteLatest('api', sent(100), at(100));
    expect(times.missingBefore('api', at(100))).toBe(100);
    times.noteOlder('api', sent(60, 99));
    times.noteOlder('api', sent(41));
    expect(times.missingBefore('api', at(100))).toBeUndefined();
    times.noteLatest('api', sent(119, 120), at(120));
    expect(times.missingBefore('api', at(120))).toBe(119);
    times.noteOlder('api', sent(61, 118));
    expect(times.missingBefore('api', at(120))).toBeUndefined();
    times.forget(at(120), new Set(['api']));
    expect(times.labels(at(120)).items).toMatchObject([{ label: 'a', acquired: 6 }]);
    times.forget(at(300), new Set());
    expect(times.labels(at(300)).total).toBe(0);
  });
});

describe('The wait-for graph', () => {
  const call = (id: string, holds: string[], waitsFor: string[], mode: GraphCall['mode'] = 'exclusive'): GraphCall => ({
    ...{ id, holds, waitsFor, mode, waitingMs: 1 },
    ...{ label: id, template: null, method: null, process: 'api', host: 'api', pid: 1, traceId: null },
  });

  it('calls that wait for each other are a cycle, with its edges; those that wait behind it are not', () => {
    const graph = waitGraphOf([
      call('A', ['1'], ['2']),
      call('B', ['2'], ['3']),
      call('C', ['3'], ['1']),
      call('D', ['4'], ['1']),
      call('E', ['5'], ['free']),
    ]);
    expect(graph.cycles.map((cycle) => [...cycle].sort())).toEqual([['A', 'B', 'C']]);
    expect(graph.edges).toEqual([
      { from: 'A', key: '2', to: 'B', isInCycle: true },
      { from: 'B', key: '3', to: 'C', isInCycle: true },
      { from: 'C', key: '1', to: 'A', isInCycle: true },
      { from: 'D', key: '1', to: 'A', isInCycle: false },
      { from: 'E', key: 'free', to: null, isInCycle: false },
    ]);
  });

  it('who waits for a permit is in no cycle: somebody else may give one back', () => {
    expect(waitGraphOf([call('A', ['1'], ['2'], 'permit'), call('B', ['2'], ['1'])]).cycles).toEqual([]);
  });

  it('a chain of ten thousand calls, and two circles that share none, are no problem', () => {
    const chain = new Map(Array.from({ length: 10_000 }, (_, at) => [`${at}`, [`${at + 1}`]] as const));
    const circles = circlesOf(new Map([...chain, ['10000', ['5000']]]));
    expect(circles.map(({ length }) => length)).toEqual([5_001]);
    const two = circlesOf(new Map(Object.entries({ a: ['b'], b: ['a', 'c'], c: ['d'], d: ['c'], e: ['e'] })));
    expect(two.map((circle) => circle.sort())).toEqual([
      ['c', 'd'],
      ['a', 'b'],
    ]);
  });
});
