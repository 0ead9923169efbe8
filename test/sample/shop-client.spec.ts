import { afterEach, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { ShopClient } from '../../sample-app/dev/scenarios/shop-client.js';

let server: Server;

afterEach(() => new Promise((closed) => server.close(closed)));

it('comes over a new connection each time, so that none is closed just when it is used again', async () => {
  const connections = new Set<Socket>();
  server = createServer(({ socket }: IncomingMessage, response) => {
    connections.add(socket);
    response.end('{}');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const shop = new ShopClient([`http://127.0.0.1:${(server.address() as AddressInfo).port}`]);

  for (let request = 0; request < 3; request++) await shop.ask({ path: '/' });
  await shop.crowd(4, { method: 'POST', path: '/', body: {} });

  expect(connections.size).toBe(7);
});
