import type { Redis } from 'ioredis';
import { until } from '../deferred.js';
import type { Finding } from './finding.js';

/** What is there when all are through. */
export interface Census {
  /** Keys in Redis, but for the notes of the last fences. */
  readonly keys: readonly string[];
  /** Channels that others than this process, and sentinels, listen to. */
  readonly channels: readonly string[];
  /** By process: timers and sockets that are left after the app was closed. */
  readonly left: Readonly<Record<string, readonly string[]>>;
}

/** How much later than its lease a key may go: the server clears up now and then. */
const LATE_MS = 500;

/** Waits until leases of this length are over, no longer than is needed, and looks what is left. */
export async function census(servers: readonly Redis[], leaseMs: number, left: Census['left'] = {}): Promise<Census> {
  const keys = async () =>
    (await Promise.all(servers.map((redis) => redis.keys('*')))).flat().filter((key) => !key.endsWith(':fence'));
  const channels = async () =>
    (await Promise.all(servers.map((redis) => redis.pubsub('CHANNELS') as Promise<string[]>)))
      .flat()
      .filter((channel) => !channel.startsWith('__sentinel__:') && !channel.includes(`:${process.pid}:`));
  await until(async () => (await keys()).length + (await channels()).length === 0, leaseMs + LATE_MS).catch(
    () => undefined,
  );
  return { keys: await keys(), channels: await channels(), left };
}

/** S6: nothing is left. */
export function leftovers({ keys, channels, left }: Census): Finding[] {
  const processes = Object.entries(left).filter(([, resources]) => resources.length > 0);
  return [
    ...keys.map((key) => `${key}: left in Redis after its lease`),
    ...channels.map((channel) => `${channel}: somebody still listens there`),
    ...processes.map(([pid, resources]) => `process ${pid}: has left ${resources.join(', ')}`),
  ].map((text) => ({ property: 'S6', text: `S6 ${text}` }));
}
