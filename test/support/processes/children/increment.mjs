// Adds to a counter by reading it, awaiting, and writing it back; with the lock or without it.
import { Redis } from 'ioredis';
import { boot } from './locks.mjs';

const [url, tasks, increments, locked] = process.argv.slice(2);
const redis = new Redis(url);
const { app, locks } = await boot({ connection: url, wait: '2m' });

async function increment() {
  const read = Number(await redis.get('counter'));
  await redis.set('counter', read + 1);
}

async function task() {
  for (let done = 0; done < Number(increments); done++) {
    if (locked === 'locked') await locks.withLock('counter', increment);
    else await increment();
  }
}

process.send('ready');
process.once('message', async () => {
  await Promise.all(Array.from({ length: Number(tasks) }, task));
  await app.close();
  redis.disconnect();
  process.disconnect();
});
