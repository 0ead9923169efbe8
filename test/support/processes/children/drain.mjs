// Holds locks with work under them, while others wait for them; on SIGTERM Nest closes the app, and the work ends when
// its parent says so.
import { boot } from './locks.mjs';

const [url, count, waiting = '1'] = process.argv.slice(2);
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
const refused = Array.from({ length: Number(waiting) }, (_, number) =>
  locks.withLock(`held:${number % count}`, () => 'ran', { wait: '1m' }).catch((error) => error.code),
);
process.once('message', async () => {
  process.send([...new Set(await Promise.all(refused))].join());
  finish();
});
