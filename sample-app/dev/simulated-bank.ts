import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers/promises';

/** How many requests the bank takes at a time. */
export const BANK_LIMIT = 3;

/** How long it takes for one, in ms. */
const TAKES_MS = 20;

export interface SimulatedBank {
  readonly url: string;
  /** How many requests it has taken, and how many it has refused because of its limit. */
  readonly counts: { readonly taken: number; readonly refused: number };
  stop(): Promise<void>;
}

/** Starts a bank that answers 429 to whoever comes while it is busy with as many requests as it takes at a time. */
export async function startBank(): Promise<SimulatedBank> {
  const counts = { taken: 0, refused: 0 };
  let busy = 0;
  const server = createServer(async (request, response) => {
    request.resume();
    if (busy === BANK_LIMIT) {
      counts.refused++;
      response.writeHead(429).end();
      return;
    }
    busy++;
    await setTimeout(TAKES_MS);
    busy--;
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ reference: `bank-${++counts.taken}` }));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    counts,
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
