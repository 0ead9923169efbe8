import { randomUUID } from 'node:crypto';
import type { Scenario } from './scenario.js';

const PIECES = 50;
const BUYERS = 120;

export const stock: Scenario = {
  name: 'stock',
  title: 'Flash sale',
  lock: "@WithLock('sku:<sku>')",
  runsAlone: false,
  story: `${BUYERS} buyers at once for ${PIECES} pieces`,
  why: 'Without the lock, two see the same last piece, and both get it. With it, one buyer chooses at a time, and 20 are in the shop; who waits outside for 2 s gets a 409 that says when to come again.',
  accident: { one: 'piece sold that is not there', many: 'pieces sold that are not there' },

  async run(shop, query) {
    const path = `/stock/MUG-${randomUUID().slice(0, 8).toUpperCase()}`;
    await shop.ask({ method: 'PUT', path, body: { pieces: PIECES } });
    const soldNow = async () => (await shop.ask<{ sold: number }>({ path })).sold;
    const purchase = { method: 'POST', path: `${path}/buy${query}` } as const;
    const answers = await shop.crowd(BUYERS, purchase, { figure: soldNow, comesAgain: true });
    const sold = await soldNow();
    return {
      expected: `at most ${PIECES} sold`,
      actual: `${sold} sold`,
      accidents: Math.max(0, sold - PIECES),
      answers,
    };
  },
};
