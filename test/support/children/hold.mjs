// Takes a lock, says so, and holds it until it is killed or told to stop.
import { boot } from './locks.mjs';

const [url, key, lease] = process.argv.slice(2);
const { app, locks } = await boot({ connection: url.includes(',') ? url.split(',') : url, lease: Number(lease), shutdownGrace: '5s' });
const lock = await locks.lock(key);
process.send({ fence: lock.fence });
process.once('message', async () => {
  await lock.unlock();
  await app.close();
  process.disconnect();
});
