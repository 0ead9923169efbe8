import { isDone, type Scenario } from './scenario.js';

const READERS = 40;

export const report: Scenario = {
  name: 'report',
  title: 'Report',
  lock: "@WithLock('report', { mode: 'write' })",
  runsAlone: true,
  story: `${READERS} readers at once of a report that takes 300 ms to make`,
  why: 'Without the lock, each reader finds no report, and makes one. With it, the first makes it, and the others read that one.',
  accident: { one: 'report made for nothing', many: 'reports made for nothing' },

  async run(shop, query) {
    await shop.ask({ method: 'DELETE', path: '/report' });
    const answers = await shop.crowd(READERS, { path: `/report${query}` });
    const made = new Set(answers.filter(isDone).map(({ body }) => body.id)).size;
    return {
      expected: '1 report made',
      actual: `${made} report${made === 1 ? '' : 's'} made`,
      accidents: Math.abs(made - 1),
      answers,
    };
  },
};
