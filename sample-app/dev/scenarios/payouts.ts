import { isDone, type Scenario } from './scenario.js';

const PAYOUTS = 30;

export const payouts: Scenario = {
  name: 'payouts',
  title: 'Payouts',
  lock: "@WithLock('bank', { permits: 3 })",
  runsAlone: true,
  story: `${PAYOUTS} payouts at once to a bank that takes 3 at a time`,
  why: 'Without the lock, the bank answers 429 to those who come too many at a time, and their payouts fail. With it, three are at the bank and the others wait.',
  accident: { one: 'payout refused by the bank', many: 'payouts refused by the bank' },

  async run(shop, query) {
    const body = { iban: 'DE02120300000000202051', amount: 100 };
    const answers = await shop.crowd(PAYOUTS, { method: 'POST', path: `/payouts${query}`, body });
    const taken = answers.filter(isDone).length;
    const refused = answers.filter(({ status }) => status === 502).length;
    return { expected: `${PAYOUTS} payouts taken`, actual: `${taken} payouts taken`, accidents: refused, answers };
  },
};
