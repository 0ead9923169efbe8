import type { Redis, RedisOptions } from 'ioredis';
import { readyWhileConnected } from './ready-while-connected.js';

/** How long a Sentinel that is listened to may take to reply, in ms: it may be far away. */
const LONGEST_REPLY_MS = 10_000;

const DEAF =
  'a Sentinel does not tell this app of failovers, so the app may go on with a master that has been replaced. ' +
  'Give its user at the Sentinels the rights "+subscribe" and "+sentinel|master", and the channel "&+switch-master".';

/** The event of a client that hears of no failovers: why, in a sentence. */
export const UNHEARD = 'failovers unheard';

/** Makes the clients with which ioredis asks Sentinels, and those with which it hears of failovers. */
interface SentinelConnector {
  /** False when the client has been disconnected. */
  readonly connecting: boolean;
  connectToSentinel?(endpoint: unknown, options?: RedisOptions): SentinelClient;
  /** Asks a Sentinel for the address of the server, over a connection of its own. */
  resolve(endpoint: unknown): Promise<object | null>;
  /** Begins to listen, when the client has a connection to the server. */
  initFailoverDetector(): Promise<void>;
}

type SentinelClient = Redis & { sentinel(command: string, name: string): Promise<unknown> };

/**
 * Lets the clients with which ioredis hears of failovers subscribe each time they connect: ioredis by itself gives up
 * on a Sentinel that is away for long, and prints each of its errors. And none of them outlives the client.
 *
 * Each time it also asks the Sentinel whether there was a failover that nobody heard of. Each failover has a
 * number, its epoch: a Sentinel that has just started may know only what its configuration file says, and is not
 * believed when it names another master without a later epoch.
 */
export function hearingFailovers(redis: Redis): void {
  const { connector } = redis as unknown as { readonly connector: SentinelConnector };
  const connect = connector.connectToSentinel?.bind(connector);
  if (!connect) return;
  const resolve = connector.resolve.bind(connector);
  const listen = connector.initFailoverDetector.bind(connector);
  const { disconnectTimeout, keepAlive, name, role } = redis.options;
  const epochSaidBy = (client: SentinelClient): Promise<number> =>
    role === 'slave' ? Promise.resolve(NaN) : client.sentinel('master', name!).then(epochOf);
  /** The epoch of the last failover that the Sentinel knew of which named the server. */
  let epoch = NaN;
  /** The later epoch that each Sentinel has told of. */
  const told = new Map<string, number>();
  let saidLast: Promise<number>;
  /** The host and the port of the master that a Sentinel named last. The app may reach it at another address. */
  let named: string | undefined;
  let isUnheard = false;
  const refused = (error: Error): number => {
    if (!isUnheard && error.message.startsWith('NOPERM')) {
      isUnheard = true;
      redis.emit(UNHEARD, `${DEAF} (${error.message})`);
    }
    return NaN;
  };

  // Sentinels tell of all masters that they watch, and of one failover more than once.
  const isNews = (message: string): boolean => {
    const [master, , , host, port] = message.split(' ');
    return master === name && (role === 'slave' || `${host} ${port}` !== named);
  };

  connector.resolve = async (endpoint) => {
    // It connects, and asks, at once.
    const address = resolve(endpoint);
    const asked = saidLast;
    if (!(await address)) return null;
    const said = await asked;
    if (!Number.isNaN(said)) epoch = said;
    return address;
  };
  // The connection to the server may be made after the client was disconnected.
  connector.initFailoverDetector = async () => {
    if (connector.connecting) await listen();
  };
  connector.connectToSentinel = (endpoint, options) => {
    const isForQuestions = !options;
    // When it drops the client, ioredis rejects a subscription of its own that nobody awaits: the process would end.
    const ours = { ...options, disconnectTimeout, keepAlive, autoResubscribe: false };
    if (isForQuestions) {
      const client = connect(endpoint, ours);
      const ask = client.sentinel.bind(client);
      client.sentinel = async (command, ofMaster) => {
        const said = await ask(command, ofMaster);
        if (command === 'get-master-addr-by-name' && Array.isArray(said)) named = said.join(' ');
        return said;
      };
      saidLast = epochSaidBy(client).catch(() => NaN);
      return client;
    }
    const client = connect(endpoint, {
      ...ours,
      commandTimeout: LONGEST_REPLY_MS,
      // What a lost connection leaves unanswered is not asked again, and keeps no timer.
      maxRetriesPerRequest: 0,
    });
    const subscribe = client.subscribe.bind(client);
    const emit = client.emit.bind(client);
    client.emit = (...event) => (event[0] !== 'message' || isNews(String(event[2]))) && emit(...event);
    // For ioredis, which subscribes only once, to connect. Who has subscribed can't ask any more.
    client.subscribe = () => client.connect();
    client.on('ready', () => {
      void epochSaidBy(client)
        .catch(refused)
        .then((later) => {
          const sentinel = `${client.options.host}:${client.options.port}`;
          // Once for each Sentinel: the one that is asked first may not know of it.
          if (!(later > epoch) || later === told.get(sentinel)) return;
          told.set(sentinel, later);
          redis.disconnect(true);
        });
      subscribe('+switch-master').catch(refused);
    });
    return readyWhileConnected(client.on('error', () => undefined)) as SentinelClient;
  };
}

/** Reads the epoch from what `SENTINEL MASTER` says: names and values by turns. */
function epochOf(said: unknown): number {
  const facts = said as readonly unknown[];
  return Number(facts[facts.indexOf('config-epoch') + 1]);
}
