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
  /** The same for the connections that are subscribed to something, and no others. */
  readonly subscribers: SubscriberFaults;
  stop(): Promise<void>;
}

interface SubscriberFaults {
  /** Breaks them. New ones are welcome. */
  cut(): void;
  /** Breaks them, and new ones as soon as they try to subscribe. */
  refuse(): void;
  /** Swallows what the server says to those that there are now, as a half-open connection does. */
  swallow(): void;
  /** Keeps what the server says to them until `heal`. */
  hold(): void;
  /** New ones are welcome, and what was held back arrives. */
  heal(): void;
}

/** One client, and its connection to Redis. */
interface Pair {
  readonly client: Socket;
  subscribes: boolean;
  swallows: boolean;
  held: Buffer[] | undefined;
}

/** Stands between a client and Redis on the loopback interface, and misbehaves when told to. */
export async function startProxy(targetPort: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  const pairs = new Set<Pair>();
  let replies = true;
  let requests = true;
  let subscriptions = true;
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
    const pair: Pair = { client, subscribes: false, swallows: false, held: undefined };
    pairs.add(pair);
    client.on('close', () => pairs.delete(pair));
    keep(client, redis);
    keep(redis, client);
    client.on('data', (chunk) => {
      pair.subscribes ||= /\r\nsubscribe\r\n/i.test(chunk.toString('latin1'));
      if (pair.subscribes && !subscriptions) return void client.destroy();
      if (requests) redis.write(chunk);
    });
    redis.on('data', (chunk) => {
      if (pair.swallows) return;
      if (pair.held) return void pair.held.push(chunk);
      if (replies) return void client.write(chunk);
      for (const done of onDropped) done();
      onDropped = [];
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const cut = () => sockets.forEach((socket) => socket.destroy());
  const subscribers = () => [...pairs].filter(({ subscribes }) => subscribes);
  const cutSubscribers = () => subscribers().forEach(({ client }) => client.destroy());

  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    dropReplies: () => (replies = false),
    dropRequests: () => (requests = false),
    heal: () => (replies = requests = true),
    cut,
    nextDroppedReply: () => new Promise((resolve) => onDropped.push(resolve)),
    subscribers: {
      cut: cutSubscribers,
      refuse: () => {
        subscriptions = false;
        cutSubscribers();
      },
      swallow: () => subscribers().forEach((pair) => (pair.swallows = true)),
      hold: () => subscribers().forEach((pair) => (pair.held ??= [])),
      heal: () => {
        subscriptions = true;
        for (const pair of pairs) {
          for (const chunk of pair.held ?? []) pair.client.write(chunk);
          pair.held = undefined;
        }
      },
    },
    stop: async () => {
      cut();
      server.close();
      await once(server, 'close');
    },
  };
}
