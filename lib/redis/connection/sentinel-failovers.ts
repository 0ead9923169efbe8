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
  const { disconnectTimeout, keepAlive } = redis.options;
  // When it drops the client, ioredis rejects a subscription of its own that nobody awaits: the process would end.
  const ours = { disconnectTimeout, keepAlive, autoResubscribe: false };
  const failovers = new Failovers(redis);

  connector.resolve = (endpoint) => failovers.during(resolve(endpoint));
  // The connection to the server may be made after the client was disconnected.
  connector.initFailoverDetector = async () => {
    if (connector.connecting) await listen();
  };
  connector.connectToSentinel = (endpoint, options) => {
    if (!options) return failovers.ask(connect(endpoint, ours));
    return failovers.listenTo(
      connect(endpoint, {
        ...options,
        ...ours,
        commandTimeout: LONGEST_REPLY_MS,
        // What a lost connection leaves unanswered is not asked again, and keeps no timer.
        maxRetriesPerRequest: 0,
      }),
    );
  };
}

/** What the Sentinels of a client say about its master. */
class Failovers {
  readonly #redis: Redis;
  /** The host and the port that a Sentinel named last. The app may reach the master at another address. */
  #named: string | undefined;
  /** The epoch that this Sentinel knew of. */
  #epoch = NaN;
  /** The epoch that the Sentinel which is asked says. */
  #asked: Promise<number> | undefined;
  /** The later epoch that each Sentinel has told of. */
  readonly #told = new Map<string, number>();
  #isUnheard = false;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** Notes what a Sentinel says that ioredis asks for the master. */
  ask(sentinel: SentinelClient): SentinelClient {
    const ask = sentinel.sentinel.bind(sentinel);
    sentinel.sentinel = async (command, name) => {
      const said = await ask(command, name);
      if (command === 'get-master-addr-by-name' && Array.isArray(said)) this.#named = said.join(' ');
      return said;
    };
    this.#asked = this.#epochOf(sentinel).catch(() => NaN);
    return sentinel;
  }

  /** Passes on the address that a Sentinel names which ioredis asks, when its epoch is known, too. */
  async during<Address>(naming: Promise<Address | null>): Promise<Address | null> {
    const asked = this.#asked;
    const address = await naming;
    if (!address) return null;
    const epoch = await asked!;
    if (!Number.isNaN(epoch)) this.#epoch = epoch;
    return address;
  }

  /** Lets a client subscribe to the news of a Sentinel each time it is ready, and ask it for the last. */
  listenTo(sentinel: SentinelClient): SentinelClient {
    const subscribe = sentinel.subscribe.bind(sentinel);
    const emit = sentinel.emit.bind(sentinel);
    sentinel.emit = (...event) => (event[0] !== 'message' || this.#isNews(String(event[2]))) && emit(...event);
    // For ioredis, which subscribes only once, to connect. Who has subscribed can't ask any more.
    sentinel.subscribe = () => sentinel.connect();
    sentinel.on('ready', () => {
      void this.#epochOf(sentinel).then(
        (epoch) => this.#heard(sentinel, epoch),
        (error: Error) => this.#refused(error),
      );
      subscribe('+switch-master').catch((error: Error) => this.#refused(error));
    });
    return readyWhileConnected(sentinel.on('error', () => undefined)) as SentinelClient;
  }

  get #isOfReplicas(): boolean {
    return this.#redis.options.role === 'slave';
  }

  /** Sentinels tell of all masters that they watch, and of one failover more than once. */
  #isNews(message: string): boolean {
    const [master, , , host, port] = message.split(' ');
    return master === this.#redis.options.name && (this.#isOfReplicas || `${host} ${port}` !== this.#named);
  }

  #heard({ options: { host, port } }: SentinelClient, epoch: number): void {
    const sentinel = `${host}:${port}`;
    // Once for each Sentinel: the one that is asked first may not know of it.
    if (!(epoch > this.#epoch) || epoch === this.#told.get(sentinel)) return;
    this.#told.set(sentinel, epoch);
    this.#redis.disconnect(true);
  }

  #refused({ message }: Error): void {
    if (this.#isUnheard || !message.startsWith('NOPERM')) return;
    this.#isUnheard = true;
    this.#redis.emit(UNHEARD, `${DEAF} (${message})`);
  }

  async #epochOf(sentinel: SentinelClient): Promise<number> {
    if (this.#isOfReplicas) return NaN;
    // Names and values by turns.
    const facts = (await sentinel.sentinel('master', this.#redis.options.name!)) as readonly unknown[];
    return Number(facts[facts.indexOf('config-epoch') + 1]);
  }
}
