import type { Redis, RedisOptions } from 'ioredis';
import { readyWhileConnected } from './ready-while-connected.js';

/** Makes the clients with which ioredis asks Sentinels, and those with which it hears of failovers. */
interface SentinelConnector {
  connectToSentinel?(endpoint: unknown, options?: RedisOptions): SentinelClient;
  /** Asks a Sentinel, over a connection of its own. */
  resolve(endpoint: unknown): Promise<Address | null>;
}

type SentinelClient = Redis & { sentinel(command: 'master', name: string): Promise<unknown> };

interface Address {
  readonly host: string;
  readonly port: number;
}

/** What a Sentinel says of the master. */
interface Master extends Address {
  /** Grows with each failover. `NaN` when the Sentinel does not say. */
  readonly epoch: number;
}

/**
 * Lets the clients with which ioredis hears of failovers subscribe each time they connect: ioredis by itself gives up
 * on a Sentinel that is away for long, and prints each of its errors. And none of them outlives the client.
 *
 * Where one has been away, its Sentinel is asked for the master, too: there may have been a failover that nobody heard
 * of. It is believed only when it knows of a later failover than the one that led to the present master: a Sentinel
 * that has just started may know only what its configuration file says.
 */
export function hearingFailovers(redis: Redis): void {
  const { connector } = redis as unknown as { readonly connector: SentinelConnector };
  const connect = connector.connectToSentinel?.bind(connector);
  if (!connect) return;
  const resolve = connector.resolve.bind(connector);
  const { disconnectTimeout, keepAlive, name, role } = redis.options;
  const isForMaster = role !== 'slave';
  let master: Master | null = null;
  let epoch: Promise<number>;

  const ask = async (endpoint: unknown): Promise<Master | null> => {
    // It connects at once.
    const answer = resolve(endpoint);
    const asked = epoch;
    const address = await answer;
    return address && { ...address, epoch: await asked };
  };
  const moveIfReplaced = async (endpoint: unknown): Promise<void> => {
    const known = master;
    const other = isForMaster && (await ask(endpoint));
    if (!known || !other || known !== master || !(other.epoch > known.epoch)) return;
    if (other.host !== known.host || other.port !== known.port) redis.disconnect(true);
  };

  connector.resolve = async (endpoint) => (master = await ask(endpoint));
  connector.connectToSentinel = (endpoint, options) => {
    // When it drops the client, ioredis rejects a subscription of its own that nobody awaits: the process would end.
    const client = connect(endpoint, { ...options, disconnectTimeout, keepAlive, autoResubscribe: false });
    const isForQuestions = !options;
    if (isForQuestions) {
      epoch = isForMaster ? epochOf(client.sentinel('master', name!)) : Promise.resolve(NaN);
      return client;
    }
    let wasAway = false;
    client.on('close', () => (wasAway = true));
    client.on('ready', () => {
      void client
        .subscribe('+switch-master')
        .then(() => (wasAway ? moveIfReplaced(endpoint) : undefined))
        .catch(() => undefined);
    });
    return readyWhileConnected(client.on('error', () => undefined)) as SentinelClient;
  };
}

/** Reads the epoch of the last failover from what `SENTINEL MASTER` says: names and values by turns. */
async function epochOf(reply: Promise<unknown>): Promise<number> {
  try {
    const facts = (await reply) as readonly unknown[];
    return Number(facts[facts.indexOf('config-epoch') + 1]);
  } catch {
    return NaN;
  }
}
