import { isDone, type Scenario } from './scenario.js';

const WITHDRAWALS = 400;
const START = 10_000;

export const balance: Scenario = {
  name: 'balance',
  story: `${WITHDRAWALS} withdrawals of 1 at once from one account`,
  accident: 'lost updates',

  async run(shop, query) {
    const { id } = await shop.ask<{ id: number }>({
      method: 'POST',
      path: '/accounts',
      body: { owner: 'Race', balance: START },
    });
    const answers = await shop.crowd(WITHDRAWALS, {
      method: 'POST',
      path: `/accounts/${id}/withdraw${query}`,
      body: { amount: 1 },
    });
    const { balance } = await shop.ask<{ balance: number }>({ path: `/accounts/${id}` });
    const expected = START - answers.filter(isDone).length;
    return {
      expected: `balance ${expected}`,
      actual: `balance ${balance}`,
      accidents: Math.abs(balance - expected),
      answers,
    };
  },
};
