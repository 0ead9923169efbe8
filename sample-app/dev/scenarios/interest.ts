import type { Scenario } from './scenario.js';

const ACCOUNTS = 5;

export const interest: Scenario = {
  name: 'interest',
  title: 'Nightly interest',
  lock: "@WithLock('interest', { wait: 0, onTimeout: 'skip' })",
  runsAlone: true,
  story: 'all processes start the nightly interest at the same moment',
  why: 'Without the lock, each process pays everybody. With it, one pays, and the others leave.',
  accident: { one: 'payment too many', many: 'payments too many' },

  async run(shop, query) {
    const account = { method: 'POST', path: '/accounts', body: { owner: 'Race', balance: 10_000 } } as const;
    const opened = Array.from({ length: ACCOUNTS }, () => shop.ask<{ id: number }>(account));
    const ids = (await Promise.all(opened)).map(({ id }) => id);
    const day = new Date().toISOString().slice(0, 10);
    const answers = await shop.crowd(shop.processes, { method: 'POST', path: `/interest/runs${query}`, body: { day } });
    const paid = ids.map((id) => shop.ask<{ payments: number }>({ path: `/interest/accounts/${id}` }));
    const payments = (await Promise.all(paid)).reduce((sum, one) => sum + one.payments, 0);
    return {
      expected: `${ACCOUNTS} payments`,
      actual: `${payments} payments`,
      accidents: Math.abs(payments - ACCOUNTS),
      answers,
    };
  },
};
