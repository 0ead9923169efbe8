import { once } from 'node:events';
import { connect } from 'node:net';

/** A client that sends its next request before it has the answer to the last one. */
export interface PipeliningClient {
  /** All that it has been sent so far. */
  readonly received: () => string;
  /** Sends requests in one packet. */
  ask(...paths: readonly string[]): void;
  /** Goes away without waiting for the answers. */
  leave(): Promise<void>;
}

/** Connects to `http://127.0.0.1:port`. */
export async function pipeliningClient(port: number): Promise<PipeliningClient> {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined);
  let received = '';
  socket.on('data', (chunk: Buffer) => (received += chunk.toString()));
  await once(socket, 'connect');
  const closed = once(socket, 'close');
  return {
    received: () => received,
    ask: (...paths) =>
      void socket.write(paths.map((path) => `GET /${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`).join('')),
    leave: async () => {
      socket.destroy();
      await closed;
    },
  };
}
