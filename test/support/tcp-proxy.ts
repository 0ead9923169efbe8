import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** What goes one way on a connection. */
class Flow {
  readonly #to: Socket;
  #held: Buffer[] | undefined;
  #onHeld: (() => void)[] = [];

  constructor(to: Socket) {
    this.#to = to;
  }

  /** Keeps back what comes from now on. */
  hold(): void {
    this.#held ??= [];
  }

  /** Resolves when the next bytes are kept back. */
  nextHeld(): Promise<void> {
    return new Promise((resolve) => this.#onHeld.push(resolve));
  }

  /** Sends on what was kept back, and everything from now on. */
  release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const chunk of held) this.#to.write(chunk);
  }

  write(chunk: Buffer): void {
    if (!this.#held) return void this.#to.write(chunk);
    this.#held.push(chunk);
    for (const done of this.#onHeld.splice(0)) done();
  }
}

/** One connection through the proxy. */
export interface Wire {
  readonly requests: Flow;
  readonly replies: Flow;
  /** The client's end is gone; the server is not told. */
  loseClient(): void;
}

export interface TcpProxy {
  readonly port: number;
  readonly url: string;
  /** All connections there have been, by arrival. */
  readonly wires: readonly Wire[];
  /** Swallows what the server says from now on; the client's words still get through. */
  dropReplies(): void;
  /** Swallows what the client says from now on. */
  dropRequests(): void;
  /** Both ways work again, for what is sent from now on; and new connections are welcome. */
  heal(): void;
  /** Breaks every connection. New ones are welcome. */
  cut(): void;
  /** Breaks every connection, and every new one. */
  refuse(): void;
  /** Resolves when the next bytes of the server have been swallowed, so the command has run. */
  nextDroppedReply(): Promise<void>;
  stop(): Promise<void>;
}

/** Stands between a client and Redis on the loopback interface, and misbehaves when told to. */
export async function startProxy(targetPort: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  const wires: Wire[] = [];
  let welcome = true;
  let replies = true;
  let requests = true;
  let onDropped: (() => void)[] = [];

  const keep = (socket: Socket, onClose: () => void) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      sockets.delete(socket);
      onClose();
    });
  };
  const server = createServer((client) => {
    if (!welcome) return void client.on('error', () => undefined).destroy();
    const redis = connect(targetPort, '127.0.0.1');
    let lost = false;
    const wire = {
      requests: new Flow(redis),
      replies: new Flow(client),
      loseClient: () => {
        lost = true;
        client.destroy();
      },
    };
    wires.push(wire);
    keep(client, () => !lost && redis.destroy());
    keep(redis, () => client.destroy());
    client.on('data', (chunk: Buffer) => requests && wire.requests.write(chunk));
    redis.on('data', (chunk: Buffer) => {
      if (replies) return wire.replies.write(chunk);
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
    wires,
    dropReplies: () => (replies = false),
    dropRequests: () => (requests = false),
    heal: () => (welcome = replies = requests = true),
    cut,
    refuse: () => {
      welcome = false;
      cut();
    },
    nextDroppedReply: () => new Promise((resolve) => onDropped.push(resolve)),
    stop: async () => {
      cut();
      server.close();
      await once(server, 'close');
    },
  };
}
