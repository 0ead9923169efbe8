import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below those that the system gives to clients: one of them could have it before a server does. */
const [FIRST, BEHIND] = [10_000, 30_000];

/** Finds a port of the loopback interface that nobody uses; with a distance, nor the port that far behind it. */
export async function freePort(distance = 0) {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * (BEHIND - FIRST - distance));
    if ((await isFree(port)) && (distance === 0 || (await isFree(port + distance)))) return port;
  }
}

async function isFree(port) {
  const probe = createServer().listen(port, '127.0.0.1');
  const listens = await once(probe, 'listening').then(
    () => true,
    () => false,
  );
  if (!listens) return false;
  probe.close();
  await once(probe, 'close');
  return true;
}
