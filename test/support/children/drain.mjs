// Holds locks with work under them; on SIGTERM Nest closes the app, and the work ends when its parent says so.
import { boot } from './locks.mjs';

const [url, count] = process.argv.slice(2);
const { app, locks } = await boot({ connection: url, shutdownGrace: '10s' });
app.enableShutdownHooks();

let finish;
const finished = new Promise((resolve) => (finish = resolve));
let held = 0;
for (let number = 0; number < Number(count); number++) {
  void locks.withLock(`held:${number}`, () => {
    if (++held === Number(count)) process.send('held');
    return finished;
  });
}
const refused = locks.withLock('held:0', () => 'ran').catch((error) => error.code);
process.once('message', async () => {
  process.send(await refused);
  finish();
});
