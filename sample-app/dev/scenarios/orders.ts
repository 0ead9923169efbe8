import { randomUUID } from 'node:crypto';
import { isDone, type Scenario } from './scenario.js';

const SENT = 8;

export const orders: Scenario = {
  name: 'orders',
  title: 'An order, once',
  lock: "@WithLock('order:<request.serial>')",
  runsAlone: false,
  story: `one order, sent ${SENT} times at once by an impatient client`,
  why: 'Without the lock, each copy finds no order yet, so that each makes one and charges the customer. With it, the first makes the order, and the others get the same answer.',
  accident: { one: 'order too many', many: 'orders too many' },

  async run(shop, query) {
    const body = { serial: `race-${randomUUID()}`, item: 'A red mug', amount: 1_200 };
    const answers = await shop.crowd(SENT, { method: 'POST', path: `/orders${query}`, body });
    const created = new Set(answers.filter(isDone).map(({ body }) => body.id)).size;
    const { charges } = await shop.ask<{ charges: number }>({ path: `/orders/${body.serial}/charges` });
    return {
      expected: '1 order, 1 charge',
      actual: `${count(created, 'order')}, ${count(charges, 'charge')}`,
      accidents: Math.max(Math.abs(created - 1), Math.abs(charges - 1)),
      answers,
    };
  },
};

const count = (many: number, what: string): string => `${many} ${what}${many === 1 ? '' : 's'}`;
