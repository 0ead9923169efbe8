// Callers that take a key, or some of several, again and again, and note when each was inside. Says "ready", begins at
// "go"; sends its journal when all of them are through, or soon after "stop". { cancel: 9 } ends the wait of every 9th
// caller. If it is named a file, what happens stands there as well, before it goes on: that survives a SIGKILL.
/* global AbortController */
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { Journal } from './journal.mjs';
import { boot, clock } from './locks.mjs';

const [url, keys, plan] = process.argv.slice(2);
const { callers, sections, holdMs, arriveWithinMs = 0, pauseMs = 0, file, lease, options } = JSON.parse(plan);
const pick = picker(JSON.parse(keys));
const { app, locks } = await boot({
  connection: url.includes(',') ? url.split(',') : url,
  lease,
  wait: '5m',
  commandTimeout: '10s',
});

const enter = options.wait === 0 ? locks.tryLock.bind(locks) : locks.lock.bind(locks);
const cancels = Array.from({ length: callers }, () => new AbortController());
const journal = new Journal(file);
const stays = [];
let cancelled = 0;
let stopped = false;

/** Of several keys: one to four of them, in any order. */
function picker(keys) {
  if (typeof keys === 'string') return () => keys;
  return () =>
    keys
      .map((key) => ({ key, at: Math.random() }))
      .sort((a, b) => a.at - b.at)
      .slice(0, 1 + Math.floor(Math.random() * 4))
      .map(({ key }) => key);
}

async function enterOnce(signal) {
  const askedAt = clock();
  const lock = await enter(pick(), { ...options, signal });
  if (!lock) return;
  const stay = journal.enter(lock, { askedAt, permits: options.permits });
  const [least, most] = [holdMs].flat();
  const ms = most === undefined ? least : least + Math.random() * (most - least);
  if (ms > 0) await stay.stay(ms);
  else await turn();
  stays.push(stay.exit());
  stay.unlocked(await lock.unlock());
}

async function call({ signal }) {
  if (arriveWithinMs > 0) await sleep(Math.random() * arriveWithinMs);
  try {
    for (let done = 0; done < sections && !stopped; done++) {
      await enterOnce(signal);
      if (pauseMs > 0) await sleep(Math.random() * pauseMs);
    }
  } catch (error) {
    if (error !== signal.reason) throw error;
    cancelled++;
  }
}

process.on('message', async (message) => {
  if (message === 'stop') stopped = true;
  if (message.cancel)
    cancels.filter((_, index) => index % message.cancel === 0).forEach((cancel) => cancel.abort('cancelled'));
  if (message !== 'go') return;
  await Promise.all(cancels.map(call));
  await new Promise((sent) => process.send({ journal: stays, cancelled }, sent));
  await app.close();
  process.disconnect();
});
process.send('ready');
