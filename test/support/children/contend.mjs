// Callers that take one key again and again, and note when each was inside. Says "ready", begins at "go"; sends its journal when
// all of them are through, or soon after "stop". { cancel: 9 } ends the wait of every 9th caller.
/* global AbortController */
import { setTimeout as delay, setImmediate as turn } from 'node:timers/promises';
import { boot } from './locks.mjs';

const [url, key, plan] = process.argv.slice(2);
const { callers, sections, holdMs, arriveWithinMs = 0, options } = JSON.parse(plan);
const { app, locks } = await boot({ connection: url.includes(',') ? url.split(',') : url, wait: '5m' });

/** The same clock in every process of this machine, in ms. */
const clock = () => Number(process.hrtime.bigint()) / 1e6;
const cancels = Array.from({ length: callers }, () => new AbortController());
const journal = [];
let cancelled = 0;
let stopped = false;

async function enterOnce(signal) {
  const askedAt = clock();
  const lock = await locks.lock(key, { ...options, signal });
  const beganAt = clock();
  await (holdMs > 0 ? delay(holdMs) : turn());
  const { token, fence, isHeld } = lock;
  journal.push({ token, fence, isHeld, askedAt, beganAt, endedAt: clock() });
  await lock.unlock();
}

async function call({ signal }) {
  if (arriveWithinMs > 0) await delay(Math.random() * arriveWithinMs);
  try {
    for (let done = 0; done < sections && !stopped; done++) await enterOnce(signal);
  } catch (error) {
    if (error !== signal.reason) throw error;
    cancelled++;
  }
}

process.on('message', async (message) => {
  if (message === 'stop') stopped = true;
  if (message.cancel) cancels.filter((_, index) => index % message.cancel === 0).forEach((cancel) => cancel.abort('cancelled'));
  if (message !== 'go') return;
  await Promise.all(cancels.map(call));
  await new Promise((sent) => process.send({ journal, cancelled }, sent));
  await app.close();
  process.disconnect();
});
process.send('ready');
