import { randomUUID } from 'node:crypto';
import { isDone, type Scenario } from './scenario.js';

const SENT = 8;

export const orders: Scenario = {
  name: 'orders',
  title: 'An order, once',
  lock: "@WithLock('order:<request.serial>')",
  runsAlone: false,
  story: `one order, sent ${SENT} times at once by an impatient client`,
  accident: 'orders too many',

  async run(shop, query) {
    const body = { serial: `race-${randomUUID()}`, item: 'A red mug', amount: 1_200 };
    const answers = await shop.crowd(SENT, { method: 'POST', path: `/orders${query}`, body });
    const created = new Set(answers.filter(isDone).map(({ body }) => body.id)).size;
    const { charges } = await shop.ask<{ charges: number }>({ path: `/orders/${body.serial}/charges` });
    return {
      expected: '1 order, 1 charge',
      actual: `${created} created, ${charges} charged`,
      accidents: Math.max(Math.abs(created - 1), Math.abs(charges - 1)),
      answers,
    };
  },
};
