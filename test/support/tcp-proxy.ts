import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

export interface TcpProxy {
  readonly port: number;
  readonly url: string;
  /** Swallows what the server says from now on; the client's words still get through. */
  dropReplies(): void;
  /** Swallows what the client says from now on. */
  dropRequests(): void;
  /** Both ways work again, for what is sent from now on. */
  heal(): void;
  /** Breaks every connection. New ones are welcome. */
  cut(): void;
  /** Resolves when the next bytes of the server have been swallowed, so the command has run. */
  nextDroppedReply(): Promise<void>;
  stop(): Promise<void>;
}

/** Stands between a client and Redis on the loopback interface, and misbehaves when told to. */
export async function startProxy(targetPort: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let replies = true;
  let requests = true;
  let onDropped: (() => void)[] = [];

  const keep = (socket: Socket, other: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      sockets.delete(socket);
      other.destroy();
    });
  };
  const server = createServer((client) => {
    const redis = connect(targetPort, '127.0.0.1');
    keep(client, redis);
    keep(redis, client);
    client.on('data', (chunk) => requests && redis.write(chunk));
    redis.on('data', (chunk) => {
      if (replies) return void client.write(chunk);
      for (const done of onDropped) done();
      onDropped = [];
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const cut = () => sockets.forEach((socket) => socket.destroy());

  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    dropReplies: () => (replies = false),
    dropRequests: () => (requests = false),
    heal: () => (replies = requests = true),
    cut,
    nextDroppedReply: () => new Promise((resolve) => onDropped.push(resolve)),
    stop: async () => {
      cut();
      server.close();
      await once(server, 'close');
    },
  };
}
