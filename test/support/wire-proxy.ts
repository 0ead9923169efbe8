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

export interface WireProxy {
  readonly url: string;
  /** All connections there have been, by arrival. */
  readonly wires: readonly Wire[];
  /** Breaks every connection. New ones are welcome. */
  cut(): void;
  /** Breaks every connection, and every new one until `welcome`. */
  refuse(): void;
  welcome(): void;
  stop(): Promise<void>;
}

/** Stands between a client and Redis on the loopback interface, and lets a test hold up each way of each connection. */
export async function startWireProxy(targetPort: number): Promise<WireProxy> {
  const sockets = new Set<Socket>();
  const wires: Wire[] = [];
  let open = true;

  const keep = (socket: Socket, onClose: () => void) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      sockets.delete(socket);
      onClose();
    });
  };
  const server = createServer((client) => {
    if (!open) return void client.on('error', () => undefined).destroy();
    const redis = connect(targetPort, '127.0.0.1');
    const requests = new Flow(redis);
    const replies = new Flow(client);
    let lost = false;
    const loseClient = () => {
      lost = true;
      client.destroy();
    };
    wires.push({ requests, replies, loseClient });
    keep(client, () => !lost && redis.destroy());
    keep(redis, () => client.destroy());
    client.on('data', (chunk: Buffer) => requests.write(chunk));
    redis.on('data', (chunk: Buffer) => replies.write(chunk));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = () => sockets.forEach((socket) => socket.destroy());

  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    wires,
    cut,
    refuse: () => {
      open = false;
      cut();
    },
    welcome: () => (open = true),
    stop: async () => {
      cut();
      server.close();
      await once(server, 'close');
    },
  };
}
