import { isDone, type Scenario } from './scenario.js';

const PAYOUTS = 30;

export const payouts: Scenario = {
  name: 'payouts',
  title: 'Payouts',
  lock: "@WithLock('bank', { permits: 3 })",
  runsAlone: true,
  story: `${PAYOUTS} payouts at once to a bank that takes 3 at a time`,
  accident: 'refused by the bank',

  async run(shop, query) {
    const body = { iban: 'DE02120300000000202051', amount: 100 };
    const answers = await shop.crowd(PAYOUTS, { method: 'POST', path: `/payouts${query}`, body });
    const taken = answers.filter(isDone).length;
    const refused = answers.filter(({ status }) => status === 502).length;
    return { expected: `${PAYOUTS} taken`, actual: `${taken} taken`, accidents: refused, answers };
  },
};
