import { describe, expect, it } from '@jest/globals';
import { judge } from '../support/checker/verdict.js';
import { clock, longestWaitMs, lost, type Plan } from '../support/processes/contenders.js';
import { averageAtOnce, mostAtOnce } from '../support/processes/crowds.js';
import { until } from '../support/deferred.js';
import { figures, LONG, percentile, sized } from '../support/lab.js';
import { Stage } from '../support/processes/stage.js';

const KEY = 'account:1';
const LEASE_MS = 1000;
const LONG_LEASE_MS = 10_000;

/** What a lost message, or a holder that crashed, may cost in addition. */
const CHECK_MS = 1500;

const read = { mode: 'read', lease: LEASE_MS } as const;
const write = { mode: 'write', lease: LEASE_MS } as const;

describe('Readers and writers in several processes', () => {
  const stage = Stage.forEach();

  it(
    'writers are alone, readers share, and all get in soon, while processes of readers are killed and replaced',
    async () => {
      const { here, journals } = stage;
      const processes = sized(2, 5);
      const readers: Plan = { callers: 50 / processes, sections: 1e9, holdMs: [2, 60], options: read };
      const writers: Plan = { callers: 3, sections: 1e9, holdMs: [1, 5], options: write };
      // Two processes of writers that never pause can stand between two of readers in the queue, round after round:
      // then only one of these reads at a time.
      const nowAndThen: Plan = { ...writers, callers: 2, pauseMs: 1000 };
      const started = await stage.contenders(KEY, ...Array<Plan>(processes).fill(readers), writers, nowAndThen);
      const alive = started.slice(0, processes);
      const kills: number[] = [];
      const rounds = sized(2, 40);
      for (let round = 1; round <= rounds; round++) {
        // So that readers of several processes share, and one of them is killed.
        await journals.when(() => alive.slice(0, 2).every(({ file }) => journals.inside(file) > 0));
        kills.push(clock());
        await alive.shift()!.kill();
        const next = round < rounds ? stage.contenders(KEY, readers) : [];
        // The test is a writer too, so it knows when the others go on.
        await here.withLock(KEY, () => undefined, write);
        alive.push(...(await next));
      }
      const going = [...alive, ...started.slice(processes)];
      for (const contender of going) contender.stop();
      await Promise.all(going.map((contender) => contender.report()));

      const sections = journals.sections();
      const ofReaders = sections.filter(({ mode }) => mode === 'read');
      const ofWriters = sections.filter(({ mode }) => mode === 'write');
      const afterKill = kills.map(
        (killedAt) => ofWriters.find(({ beganAt }) => beganAt > killedAt)!.beganAt - killedAt,
      );
      figures(
        '50 readers and 5 writers, processes of readers killed',
        'a writer is alone, readers share, nobody starves',
        {
          readers: ofReaders.length,
          writers: ofWriters.length,
          'readers at once': mostAtOnce(ofReaders),
          'on average': averageAtOnce(ofReaders),
          'took s': (sections.at(-1)!.endedAt - sections[0]!.beganAt) / 1000,
          kills: kills.length,
          lost: lost(sections).length,
          'longest wait ms: reader': longestWaitMs(ofReaders),
          writer: longestWaitMs(ofWriters),
          'writer after a kill ms: p50': percentile(afterKill, 0.5),
          most: Math.max(...afterKill),
        },
      );
      expect(judge(sections).examples()).toBe('');
      expect(averageAtOnce(ofReaders)).toBeGreaterThan(2);
      expect(Math.max(...afterKill)).toBeLessThan(LEASE_MS + CHECK_MS);
      // Two kills may fall into one wait.
      expect(longestWaitMs(ofWriters)).toBeLessThan(2 * (LEASE_MS + CHECK_MS));
      expect(longestWaitMs(ofReaders)).toBeLessThan(2 * (LEASE_MS + CHECK_MS));
      for (const { file } of going) expect(journals.inside(file)).toBe(0);
    },
    LONG ? 300_000 : 30_000,
  );

  it(
    'the share of a killed reader ends with its own lease, though another reader renews; then a writer is next',
    async () => {
      const { here, redis } = stage;
      const late: number[] = [];
      for (let round = 0; round < sized(2, 40); round++) {
        const reader = await here.lock(KEY, { ...read, lease: LONG_LEASE_MS });
        const { child, fence } = await stage.holder(KEY, read);
        let wroteAt = Infinity;
        const writer = here.withLock(KEY, ({ fence }) => ((wroteAt = clock()), fence), write);
        await stage.queued(KEY, 1);
        await child.kill();
        const killedAt = clock();
        await reader.extend();
        // In every second round the other reader leaves at once, with the lease of the dead one still going on.
        if (round % 2 === 0) await until(async () => (await here.inspect(KEY))!.holders.length === 1);
        const partEndedAt = clock();
        expect(wroteAt).toBe(Infinity);
        reader.assertHeld();
        await reader.unlock();
        expect(await writer).toBeGreaterThan(fence);
        late.push(wroteAt - killedAt);
        if (round % 2 === 0) expect(wroteAt - partEndedAt).toBeLessThan(LEASE_MS);
        expect(partEndedAt - killedAt).toBeLessThan(2 * LEASE_MS);
        expect(await redis.exists(`lock:${KEY}`)).toBe(0);
      }
      figures(
        'A reader is killed while another renews its lease',
        "a writer enters when the dead reader's lease ends",
        {
          rounds: late.length,
          'writer after ms: p50': percentile(late, 0.5),
          most: Math.max(...late),
        },
      );
      expect(Math.max(...late)).toBeLessThan(LEASE_MS + CHECK_MS);
    },
    LONG ? 300_000 : 30_000,
  );
});
