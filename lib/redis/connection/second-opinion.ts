import type { Cluster, Redis } from 'ioredis';
import { atRoot } from '../../clock/root-context.js';
import { afterRunning } from '../../clock/running-time.js';
import { LONGEST_CONNECT_MS } from './client-defaults.js';
import { scriptProbe } from './plain-call.js';
import { ScriptCommand } from './script-command.js';

/**
 * Finds out why a connection of the app's client is silent: the server hangs, or the connection alone. A firewall that
 * forgets a connection tells neither end, and a command that blocks holds up all others.
 */
export class SecondOpinion<Client extends Redis | Cluster> {
  readonly #graceMs: number;
  /** What ends a question that is asked now, by the client that is silent. */
  readonly #asking = new Map<Redis, () => void>();

  constructor(commandTimeoutMs: number) {
    this.#graceMs = commandTimeoutMs / 4;
  }

  /**
   * Asks the server through a further client. One that fails to connect tries again by itself, and waits longer each
   * time: the server may be far away.
   *
   * @param silent the client that gets no reply, or that of the node of a cluster
   * @param make makes the further client, which connects when it is told to
   * @param find finds the same node in it
   * @returns the further client, connected, when the server replied to it and nothing was read by the other meanwhile.
   *   Otherwise, and while another call asks, undefined
   */
  async ask(
    silent: Redis,
    make: () => Client,
    find: (further: Client) => Redis | undefined,
  ): Promise<Client | undefined> {
    if (this.#asking.has(silent)) return undefined;
    const { status } = silent;
    const stream = silent.stream as Redis['stream'] | undefined;
    const bytesRead = stream?.bytesRead;
    const further = make();
    const failure = failureOf(further);
    // A proxy may accept the connection, and say nothing.
    const replies = await atRoot(() => this.#unlessEnded(silent, this.#isReplied(further, find)));
    // A client that has let go of its connection by itself is not dead.
    const isSilentStill = silent.status === status && silent.stream === stream && stream?.bytesRead === bytesRead;
    failure.settle();
    if (replies && !failure.isThere && isSilentStill) return further;
    further.disconnect();
    return undefined;
  }

  close(): void {
    for (const end of this.#asking.values()) end();
  }

  /** Returns false when it takes too long, or when there is no more need for it. */
  async #unlessEnded(silent: Redis, isReplied: Promise<boolean>): Promise<boolean> {
    let stop = () => {};
    const ended = new Promise<false>((resolve) => {
      const end = () => resolve(false);
      this.#asking.set(silent, end);
      stop = afterRunning(LONGEST_CONNECT_MS, end);
    });
    const replies = await Promise.race([isReplied, ended]);
    stop();
    this.#asking.delete(silent);
    return replies;
  }

  async #isReplied(further: Client, find: (further: Client) => Redis | undefined): Promise<boolean> {
    const ready = new Promise<void>((resolve) => further.once('ready', resolve));
    further.connect().catch(() => undefined);
    await ready;
    const node = find(further);
    const isReplied = node !== undefined && (await repliesToScript(node));
    // A server that hung replies to all at once, in any order.
    await new Promise<void>((resolve) => afterRunning(this.#graceMs, resolve));
    return isReplied && further.status === 'ready';
  }
}

/**
 * Notes whether a client fails, also because it can't switch to its database: it would go on in another. A function of
 * its own, because a listener holds all that is in reach where it is made: in `ask` that is the silent client, which
 * may itself have taken the place of another.
 */
function failureOf(client: Redis | Cluster): { readonly isThere: boolean; readonly settle: () => void } {
  let isThere = false;
  const connecting = () => (isThere = false);
  client.on('connecting', connecting);
  // Stays: nobody else may listen yet.
  client.on('error', () => (isThere = true));
  return {
    get isThere() {
      return isThere;
    },
    settle: () => client.off('connecting', connecting),
  };
}

/**
 * Runs a script. The app's `commandTimeout` does not limit it: a node of a cluster connects only now, which takes
 * several round trips.
 */
function repliesToScript(node: Redis): Promise<boolean> {
  return new Promise((resolve) => {
    ScriptCommand.send(node, scriptProbe(), {
      // A client may read numbers as texts.
      replied: (_, reply) => resolve(Number(reply) === 1),
      failed: () => resolve(false),
    });
  });
}
