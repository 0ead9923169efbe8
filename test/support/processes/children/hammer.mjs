// Callers that take any of some keys again and again, whatever Redis does meanwhile, and note when each was inside.
// Says "ready", begins at "go", ends soon after "stop" and sends how many calls failed, by code, and what is left in
// the process then. A key that begins with "shared" is read, and now and then written; of one that begins with
// "nested", readers write inside, too, as far as they are alone; one that begins with "permits" has three. Several keys
// may be one of them.
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { Cluster } from 'ioredis';
import { Journal } from './journal.mjs';
import { boot, clock } from './locks.mjs';

const AFTER_A_FAILURE_MS = 20;
const SOCKETS_CLOSE_MS = 3000;

const { connection, options, keys, callers, holdMs, stayMs, sharersStay = 0.05, file } = JSON.parse(process.argv[2]);
const cluster = connection.cluster && new Cluster(connection.cluster, { clusterRetryStrategy: () => 100 });
cluster?.on('error', () => undefined);
const { app, locks } = await boot({ connection: cluster ?? connection, shutdownGrace: '5s', ...options });

const journal = new Journal(file);
const between = ([least, most]) => least + Math.random() * (most - least);
const failed = {};
let stopped = false;

/** For a moment, and now and then for long. */
const howLong = ({ mode, permits }) =>
  between(Math.random() < (mode || permits ? sharersStay : 0.05) ? stayMs : holdMs);

function kindOf(keys) {
  const key = String(keys);
  if (key.startsWith('shared')) return { mode: Math.random() < 0.75 ? 'read' : 'write' };
  if (key.startsWith('nested')) return Math.random() < 0.75 ? { mode: 'read', nests: true } : { mode: 'write' };
  return key.startsWith('permits') ? { permits: 3 } : {};
}

async function lockAndUnlock(key, kind) {
  const askedAt = clock();
  const { mode, permits } = kind;
  const lock = await locks.lock(key, { mode, permits });
  const stay = journal.enter(lock, { askedAt, ...kind });
  await stay.stay(howLong(kind), { leaves: true });
  stay.exit();
  stay.unlocked(await lock.unlock());
}

async function withLock(key, { nests, ...kind }) {
  const askedAt = clock();
  let stay;
  try {
    await locks.withLock(
      key,
      async (lock) => {
        stay = journal.enter(lock, { askedAt, ...kind });
        await stay.stay(howLong(kind), { leaves: true });
        if (nests) await withLock(key, { mode: 'write' }).catch(noted);
        stay.exit();
      },
      kind,
    );
  } catch (error) {
    stay?.failed(error.code);
    throw error;
  }
}

function noted(error) {
  if (!error.code?.startsWith('LOCK_')) throw error;
  failed[error.code] = (failed[error.code] ?? 0) + 1;
}

async function call() {
  while (!stopped) {
    const key = keys[Math.floor(Math.random() * keys.length)];
    await (Math.random() < 0.5 ? lockAndUnlock : withLock)(key, kindOf(key)).catch((error) => {
      noted(error);
      return sleep(AFTER_A_FAILURE_MS);
    });
  }
}

/** What would keep the process, but for its parent. */
const left = () => process.getActiveResourcesInfo().filter((resource) => /Timeout|Immediate|TCP/.test(resource));

process.on('message', async (message) => {
  if (message === 'stop') stopped = true;
  if (message !== 'go') return;
  await Promise.all(Array.from({ length: callers }, call));
  await app.close();
  cluster?.disconnect();
  // The server has to close its end of the sockets too.
  for (const closedAt = clock(); left().length > 0 && clock() < closedAt + SOCKETS_CLOSE_MS;) await turn();
  await new Promise((sent) => process.send({ failed, left: left() }, sent));
  process.disconnect();
});
process.send('ready');
