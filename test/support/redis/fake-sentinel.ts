import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';

export interface FakeSentinel {
  readonly port: number;
  /** Runs before it answers who the master is. */
  beforeAnswer: () => void | Promise<void>;
  /** How many listen to it. */
  readonly subscribers: number;
  /** Tells all who listen that there is another master. */
  announce(): void;
  stop(): Promise<void>;
}

/** Says what a sentinel says to ioredis (RESP 2), and when the test likes. */
export async function startFakeSentinel(masterPort: number): Promise<FakeSentinel> {
  const sockets = new Set<Socket>();
  const subscribed = new Set<Socket>();
  const words = (...texts: string[]) =>
    `*${texts.length}\r\n${texts.map((text) => `$${text.length}\r\n${text}\r\n`).join('')}`;

  async function answer(command: string): Promise<string> {
    if (!/get-master-addr-by-name/i.test(command)) return /\r\nsentinels\r\n/i.test(command) ? '*0\r\n' : '+OK\r\n';
    await sentinel.beforeAnswer();
    return words('127.0.0.1', String(masterPort));
  }

  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => [sockets, subscribed].forEach((set) => set.delete(socket)));
    socket.on('data', (chunk) => {
      for (const command of chunk.toString().split(/(?=\*\d+\r\n)/)) {
        if (!/\r\nsubscribe\r\n/i.test(command)) void answer(command).then((text) => socket.write(text));
        else {
          subscribed.add(socket);
          socket.write('*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n');
        }
      }
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');

  const sentinel: FakeSentinel = {
    port: (server.address() as AddressInfo).port,
    beforeAnswer: () => undefined,
    get subscribers() {
      return subscribed.size;
    },
    announce: () => subscribed.forEach((socket) => socket.write(words('message', '+switch-master', 'main'))),
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
  return sentinel;
}
