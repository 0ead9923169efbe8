// Callers that take any of some keys again and again, whatever Redis does meanwhile, and note when each was inside. Says "ready", begins at
// "go", ends soon after "stop" and sends how many calls failed, by code. What happens stands in a file before it goes on.
import { openSync, writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { Cluster } from 'ioredis';
import { boot, clock } from './locks.mjs';

const NOTE_EVERY_MS = 50;
const AFTER_A_FAILURE_MS = 20;

const { connection, options, keys, callers, holdMs, stayMs, file } = JSON.parse(process.argv[2]);
const cluster = connection.cluster && new Cluster(connection.cluster, { clusterRetryStrategy: () => 100 });
cluster?.on('error', () => undefined);
const { app, locks } = await boot({ connection: cluster ?? connection, shutdownGrace: '5s', ...options });

const opened = openSync(file, 'a');
const write = (line) => writeSync(opened, `${JSON.stringify(line)}\n`);
const between = ([least, most]) => least + Math.random() * (most - least);
const failed = {};
let entered = 0;
let stopped = false;

/** Stays for a moment, and one time in twenty for long; leaves when the lock is lost. */
async function stay(lock, number) {
  const until = clock() + between(Math.random() < 0.05 ? stayMs : holdMs);
  let noted = clock();
  while (clock() < until && lock.isHeld) {
    await delay(Math.min(NOTE_EVERY_MS, until - clock()), undefined, { signal: lock.signal }).catch(() => undefined);
    if (clock() < noted + NOTE_EVERY_MS || !lock.isHeld) continue;
    noted = clock();
    write({ number, goodUntil: noted + lock.remaining() });
  }
}

async function enterOnce() {
  const askedAt = clock();
  const lock = await locks.lock(keys[Math.floor(Math.random() * keys.length)]);
  const beganAt = clock();
  const number = ++entered;
  write({ number, keys: lock.keys, mode: lock.mode, token: lock.token, fence: lock.fence, askedAt, beganAt, goodUntil: beganAt + lock.remaining() });
  await stay(lock, number);
  write({ number, isHeld: lock.isHeld, endedAt: clock() });
  await lock.unlock();
}

async function call() {
  while (!stopped) {
    await enterOnce().catch((error) => {
      if (!error.code?.startsWith('LOCK_')) throw error;
      failed[error.code] = (failed[error.code] ?? 0) + 1;
      return delay(AFTER_A_FAILURE_MS);
    });
  }
}

process.on('message', async (message) => {
  if (message === 'stop') stopped = true;
  if (message !== 'go') return;
  await Promise.all(Array.from({ length: callers }, call));
  await new Promise((sent) => process.send(failed, sent));
  await app.close();
  cluster?.disconnect();
  process.disconnect();
});
process.send('ready');
