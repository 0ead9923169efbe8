import { expect, it } from '@jest/globals';
import { TestChild } from '../support/processes/child-process.js';

/** In a process of its own: `nestjs-cls` is CommonJS, and requires Nest, which Jest can't do on Node 20. */
async function said(order: 'lock above' | 'lock below'): Promise<unknown> {
  const child = new TestChild('transactional.mjs', order);
  const message = await child.message();
  expect(await child.exit()).toBe(0);
  return message;
}

it('@WithLock above @Transactional holds the lock until the transaction is committed', async () => {
  const turn = (id: string) => ['begin, locked', `pay ${id}`, 'commit, locked'];
  expect(await said('lock above')).toEqual({ journal: [...turn('1'), ...turn('2')] });
}, 60_000);

it('@WithLock below @Transactional, which would commit after the unlock, stops the boot with the remedy', async () => {
  expect(await said('lock below')).toEqual({
    code: 'LOCK_OPTIONS_INVALID',
    message: `Payments.pay() has @Transactional (of @nestjs-cls/transactional) above @WithLock, so its transaction would commit after the lock is released.

Potential solutions:
- Write @WithLock above @Transactional: the lock is then held until the transaction has ended.`,
  });
}, 60_000);
