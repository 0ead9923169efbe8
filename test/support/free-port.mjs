import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below those that the system gives to clients: one of them could have it before a server does. */
const [FIRST, BEHIND] = [10_000, 30_000];

/** Finds a port of the loopback interface that nobody uses. */
export async function freePort() {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * (BEHIND - FIRST));
    const probe = createServer().listen(port, '127.0.0.1');
    const isFree = await once(probe, 'listening').then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    probe.close();
    await once(probe, 'close');
    return port;
  }
}
