import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';

export interface FakeSentinel {
  readonly port: number;
  /** The port of the master, as it says. */
  masterPort: number;
  /** The number of the failover that led to it, as it says. */
  epoch: number;
  /** How often it was asked for it. */
  readonly epochQuestions: number;
  /** Runs before it answers who the master is. */
  beforeAnswer: () => void | Promise<void>;
  /** What its user may not do. */
  refused: 'subscribe' | 'master' | undefined;
  /** Runs before it lets somebody listen. */
  beforeSubscribed: () => void | Promise<void>;
  /** How many are connected to it, and how many listen to it. */
  readonly clients: number;
  readonly subscribers: number;
  /** Tells all who listen that a server on this port is the master now; of another name than "main", if given. */
  announce(port: number, name?: string): void;
  /** Closes all connections, as when it restarts. */
  hangUp(): void;
  stop(): Promise<void>;
}

const NOPERM = '-NOPERM No permissions\r\n';

/** Says what a sentinel says to ioredis, and when the test likes. */
export async function startFakeSentinel(masterPort: number): Promise<FakeSentinel> {
  const sockets = new Set<Socket>();
  const subscribed = new Set<Socket>();
  let epochQuestions = 0;
  const inResp3 = new WeakSet<Socket>();
  /** How a message begins that is no reply. */
  const kindOf = (socket: Socket) => (inResp3.has(socket) ? '>' : '*');
  const words = (...texts: string[]) =>
    `*${texts.length}\r\n${texts.map((text) => `$${text.length}\r\n${text}\r\n`).join('')}`;

  async function answer(command: string): Promise<string> {
    if (/\r\nmaster\r\n/i.test(command)) {
      epochQuestions++;
      if (sentinel.refused === 'master') return NOPERM;
      return words('name', 'main', 'config-epoch', String(sentinel.epoch));
    }
    if (!/get-master-addr-by-name/i.test(command)) return /\r\nsentinels\r\n/i.test(command) ? '*0\r\n' : '+OK\r\n';
    await sentinel.beforeAnswer();
    return words('127.0.0.1', String(sentinel.masterPort));
  }

  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => [sockets, subscribed].forEach((set) => set.delete(socket)));
    let answered = Promise.resolve();
    const reply = async (command: string) => {
      if (/\r\nhello\r\n/i.test(command)) inResp3.add(socket);
      if (!/\r\nsubscribe\r\n/i.test(command)) {
        const mayAsk = inResp3.has(socket) || !subscribed.has(socket);
        return socket.write(mayAsk ? await answer(command) : "-ERR Can't execute this in this context\r\n");
      }
      await sentinel.beforeSubscribed();
      if (sentinel.refused === 'subscribe') return socket.write(NOPERM);
      socket.write(`${kindOf(socket)}3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n`);
      if (!socket.destroyed) subscribed.add(socket);
    };
    socket.on('data', (chunk) => {
      for (const command of chunk.toString().split(/(?=\*\d+\r\n)/))
        answered = answered.then(async () => void (await reply(command)));
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');

  const sentinel: FakeSentinel = {
    port: (server.address() as AddressInfo).port,
    masterPort,
    epoch: 1,
    get epochQuestions() {
      return epochQuestions;
    },
    beforeAnswer: () => undefined,
    refused: undefined,
    beforeSubscribed: () => undefined,
    get clients() {
      return sockets.size;
    },
    get subscribers() {
      return subscribed.size;
    },
    announce: (port, name = 'main') => {
      const message = words('message', '+switch-master', `${name} 127.0.0.1 1 127.0.0.1 ${port}`).slice(1);
      for (const socket of subscribed) socket.write(kindOf(socket) + message);
    },
    hangUp: () => {
      for (const socket of sockets) socket.destroy();
      subscribed.clear();
    },
    stop: async () => {
      sentinel.hangUp();
      server.close();
      await once(server, 'close');
    },
  };
  return sentinel;
}
