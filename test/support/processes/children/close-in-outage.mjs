// Uses a lock, sees Redis go, closes the app, and then has nothing left that keeps it alive.
import { boot } from './locks.mjs';

const { app, locks } = await boot({ connection: process.argv[2], commandTimeout: 200 });
await locks.withLock('account:1', () => undefined);
process.send('ready');
process.once('message', async () => {
  process.send(await locks.withLock('account:1', () => undefined).catch((error) => error.code));
  await app.close();
  process.removeAllListeners('disconnect');
  process.disconnect();
});
