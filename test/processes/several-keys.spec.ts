import { describe, expect, it } from '@jest/globals';
import { census } from '../support/checker/census.js';
import { judge } from '../support/checker/verdict.js';
import { longestWaitMs, lost, type Plan } from '../support/processes/contenders.js';
import { figures, LONG, sized } from '../support/lab.js';
import { Stage } from '../support/processes/stage.js';

const KEYS = ['a', 'b', 'c', 'd', 'e', 'f'];

const CALLERS = 10;

describe('Three processes that take one to four of six keys, named in any order', () => {
  const stage = Stage.forEach();

  it.each([
    ['default', {}, {}],
    ['fair', { fair: true }, { fair: true }],
    ['one process fair', {}, { fair: true }],
  ])(
    'three processes get several keys each without a deadlock, one caller a key at a time; nothing is left (%s)',
    async (name, options, ofTheThird) => {
      const { journals, redis } = stage;
      const plan: Plan = { callers: CALLERS, sections: sized(70, 3_334), holdMs: 0, options };
      const processes = await stage.contenders(KEYS, plan, plan, { ...plan, options: ofTheThird });
      // A process that gets an error, such as that of a wait that is over, reports none.
      const reports = await Promise.all(processes.map((contender) => contender.report()));

      const sections = journals.sections();
      const took = sections.at(-1)!.endedAt - sections[0]!.beganAt;
      figures(`Several keys at once, in any order (${name})`, 'no deadlock, no overlap', {
        operations: sections.length,
        'a second': (1000 * sections.length) / took,
        'longest wait ms': longestWaitMs(sections),
      });
      expect(reports).toHaveLength(3);
      expect(sections).toHaveLength(3 * CALLERS * plan.sections);
      expect(judge(sections, { census: await census([redis], 0) }).examples()).toBe('');
      expect(lost(sections)).toEqual([]);
      expect(sections.filter(({ keys }) => keys.length === 4).length).toBeGreaterThan(sections.length / 8);
    },
    LONG ? 600_000 : 30_000,
  );
});
