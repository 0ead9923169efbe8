import { randomUUID } from 'node:crypto';
import type { Scenario } from './scenario.js';

const PIECES = 50;
const BUYERS = 120;

export const stock: Scenario = {
  name: 'stock',
  story: `${BUYERS} buyers at once for ${PIECES} pieces`,
  accident: 'pieces sold that are not there',

  async run(shop, query) {
    const path = `/stock/MUG-${randomUUID().slice(0, 8).toUpperCase()}`;
    await shop.ask({ method: 'PUT', path, body: { pieces: PIECES } });
    const answers = await shop.crowd(BUYERS, { method: 'POST', path: `${path}/buy${query}` });
    const { sold } = await shop.ask<{ sold: number }>({ path });
    return {
      expected: `${PIECES} sold at most`,
      actual: `${sold} sold`,
      accidents: Math.max(0, sold - PIECES),
      answers,
    };
  },
};
