import { isDone, type Scenario } from './scenario.js';

const WITHDRAWALS = 400;
const START = 10_000;

export const balance: Scenario = {
  name: 'balance',
  title: 'Account balance',
  lock: "@WithLock('account:<id>')",
  runsAlone: false,
  story: `${WITHDRAWALS} withdrawals of 1 at once from one account`,
  why: 'Without the lock, two read the same balance and write the same result, so that one withdrawal is lost. With it, each starts from what the one before has written.',
  accident: { one: 'lost update', many: 'lost updates' },

  async run(shop, query) {
    const { id } = await shop.ask<{ id: number }>({
      method: 'POST',
      path: '/accounts',
      body: { owner: 'Race', balance: START },
    });
    const balanceNow = async () => (await shop.ask<{ balance: number }>({ path: `/accounts/${id}` })).balance;
    const withdrawal = { method: 'POST', path: `/accounts/${id}/withdraw${query}`, body: { amount: 1 } } as const;
    const answers = await shop.crowd(WITHDRAWALS, withdrawal, { figure: balanceNow });
    const balance = await balanceNow();
    const expected = START - answers.filter(isDone).length;
    return {
      expected: `balance ${expected}`,
      actual: `balance ${balance}`,
      accidents: Math.abs(balance - expected),
      answers,
    };
  },
};
