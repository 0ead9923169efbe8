import { MessageChannel } from 'node:worker_threads';
import { beforeEach, expect, it } from '@jest/globals';
import { Questions } from '../../lib/redis/wake/questions.js';
import { standStill, turn } from '../support/deferred.js';

const PATIENCE_MS = 60;

let silences: number;
let questions: Questions;

beforeEach(() => {
  silences = 0;
  questions = new Questions(
    () => Promise.resolve(1),
    () => silences++,
  );
});

it('a process that stood still has not waited for a reply meanwhile', async () => {
  const { port1, port2 } = new MessageChannel();
  let asked = '';
  port1.on('message', () => questions.replied(asked, 'here'));

  const outcome = questions.ask('wake', PATIENCE_MS, (id) => (asked = id));
  await turn();
  port2.postMessage('the reply');
  standStill(2 * PATIENCE_MS);

  expect(await outcome).toEqual({ text: 'here' });
  expect(silences).toBe(0);
  port1.close();
});

it('without a reply, a process is silent, and the subscription is doubted', async () => {
  expect(await questions.ask('wake', PATIENCE_MS, (id) => id)).toBe('silent');
  expect(silences).toBe(1);
});
