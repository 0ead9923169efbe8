import { once } from 'node:events';
import { connect, createServer } from 'node:net';

/** A network between the clients and Redis: each byte arrives `oneWayMs` later, in order, and none waits for another. */
export async function startDelayingProxy(targetPort, oneWayMs) {
  const sockets = new Set();
  const pass = (from, to) => {
    sockets.add(from);
    from.setNoDelay(true);
    from.on('data', (chunk) => setTimeout(() => to.writable && to.write(chunk), oneWayMs));
    from.on('error', () => undefined);
    from.on('close', () => {
      sockets.delete(from);
      to.destroy();
    });
  };
  const server = createServer((client) => {
    const redis = connect(targetPort, '127.0.0.1');
    pass(client, redis);
    pass(redis, client);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    url: `redis://127.0.0.1:${server.address().port}`,
    async stop() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
