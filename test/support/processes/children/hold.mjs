// Takes a lock, or that many shares of one; says so, says which is lost and when, and holds them until it is killed or
// told to stop.
import { boot, clock } from './locks.mjs';

const [url, key, lease, options = '{}', shares = '1'] = process.argv.slice(2);
const { app, locks } = await boot({
  connection: url.includes(',') ? url.split(',') : url,
  lease: Number(lease),
  shutdownGrace: '5s',
  commandTimeout: '10s',
});
const held = [];
while (held.length < Number(shares))
  held.push(await locks.lock(key.startsWith('[') ? JSON.parse(key) : key, JSON.parse(options)));
for (const { signal, fence } of held)
  signal.addEventListener('abort', () => process.send({ lost: fence, at: clock() }));
process.send({ fence: held[0].fence, fences: held.map(({ fence }) => fence), acquiredAt: held[0].acquiredAt });
process.once('message', async () => {
  await Promise.all(held.map((lock) => lock.unlock()));
  await app.close();
  process.disconnect();
});
