import { isDone, type Scenario } from './scenario.js';

const ACCOUNTS = 5;
const NODES = 4;

export const interest: Scenario = {
  name: 'interest',
  story: `${NODES} nodes that start the nightly interest at the same moment`,
  accident: 'payments too many',

  async run(shop, query) {
    const opened = await shop.crowd(ACCOUNTS, {
      method: 'POST',
      path: '/accounts',
      body: { owner: 'Race', balance: 10_000 },
    });
    const day = new Date().toISOString().slice(0, 10);
    const answers = await shop.crowd(NODES, { method: 'POST', path: `/interest/runs${query}`, body: { day } });
    const ids = opened.filter(isDone).map(({ body }) => body.id);
    const paid = ids.map((id) => shop.ask<{ payments: number }>({ path: `/interest/accounts/${String(id)}` }));
    const payments = (await Promise.all(paid)).reduce((sum, one) => sum + one.payments, 0);
    return {
      expected: `${ACCOUNTS} payments`,
      actual: `${payments} payments`,
      accidents: Math.abs(payments - ACCOUNTS),
      answers,
    };
  },
};
