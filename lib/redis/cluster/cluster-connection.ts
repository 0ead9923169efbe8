import type { Cluster } from 'ioredis';
import { atRoot } from '../../clock/root-context.js';
import { LockUnavailableError } from '../../errors/lock-unavailable.error.js';
import { InFlight } from '../connection/in-flight.js';
import type { LuaScript } from '../lua/lua-script.js';
import { PlainCall, type Call } from '../connection/plain-call.js';
import { NotSentError, refusedBy, type Connection, type RefusedError } from '../connection/redis-connection.js';
import { bulks } from '../wire/resp.js';
import { AwaitedCall } from '../connection/script-call.js';
import { diagnosis, withoutCommand } from '../connection/redis-diagnosis.js';
import { ClusterCommand } from './cluster-command.js';
import { slotOf } from './cluster-slot.js';
import { Topology } from './topology.js';

/** How long to wait before a call goes out again that the client gave up on, in ms. */
const TRY_AGAIN_MS = 100;

/**
 * Runs scripts on a cluster, by the app's client. It follows redirects and looks for the new master after a failover; what it
 * gives up on is sent again until the command time-out is over. One node that is down does not concern calls to the others.
 */
export class ClusterConnection implements Connection {
  readonly server = 'cluster';
  readonly findsMaster = true;
  readonly #cluster: Cluster;
  readonly #timeoutMs: number;
  readonly #inFlight: InFlight<Call>;
  /** Calls that the client gave up on, or that wait for it to be ready. */
  readonly #parked = new Set<Call>();
  readonly #topology: Topology;
  #tryAgain: NodeJS.Timeout | undefined;
  #lastError: Error | undefined;
  #resends = 0;
  #isClosed = false;

  constructor(cluster: Cluster, commandTimeoutMs: number, onReady: (reconnected: boolean) => void) {
    this.#cluster = cluster;
    this.#timeoutMs = commandTimeoutMs;
    cluster.on('node error', this.#nodeFailed);
    this.#inFlight = new InFlight(commandTimeoutMs, (call) => this.#fail(call, this.#unreachable(call)));
    this.#topology = new Topology(cluster, (reconnected) => {
      onReady(reconnected);
      this.#flush();
    });
  }

  /** How often something happened after which a call may have run twice, or a slot be served by another node. */
  get epoch(): number {
    return this.#resends + this.#topology.changes;
  }

  get isIdle(): boolean {
    return this.#inFlight.size === 0;
  }

  open(): void {
    if (this.#cluster.status === 'wait') atRoot(() => this.#cluster.connect()).catch(() => undefined);
  }

  /** Runs a script where its first key lies; anywhere, if it has none. */
  run<Reply>(script: LuaScript<Reply>, keys: readonly string[], args: readonly (string | number)[]): Promise<Reply> {
    return this.#await(script, keys, args, false);
  }

  /** The same, but fails at once with `TRYAGAIN` when the slot moves, and the keys are not all in one place. */
  attempt<Reply>(
    script: LuaScript<Reply>,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<Reply> {
    return this.#await(script, keys, args, true);
  }

  #await<Reply>(
    script: LuaScript<Reply>,
    keys: readonly string[],
    args: readonly (string | number)[],
    isImpatient: boolean,
  ): Promise<Reply> {
    const encoded = { text: bulks(keys) + bulks(args), keyCount: keys.length, count: keys.length + args.length };
    const call = new AwaitedCall(script, encoded, (error) => this.refused(error));
    call.isImpatient = isImpatient;
    call.slot = keys.length > 0 ? slotOf(keys[0]!) : undefined;
    this.send(call);
    return call.promise;
  }

  /** Runs a command that is no script, anywhere. */
  command(...words: (string | number)[]): Promise<unknown> {
    const call = new PlainCall(words);
    this.send(call);
    return call.reply;
  }

  /** A message reaches the subscribers of all nodes, but a node counts only its own: somebody may have heard it. */
  async publish(channel: string, message: string): Promise<number> {
    await this.command('PUBLISH', channel, message);
    return 1;
  }

  send(call: Call): void {
    this.#inFlight.add(call);
    this.#write(call, false);
  }

  close(): void {
    this.#isClosed = true;
    this.#cluster.off('node error', this.#nodeFailed);
    this.#topology.close();
    clearTimeout(this.#tryAgain);
    for (const call of this.#inFlight.clear()) this.#fail(call, this.#unreachable(call));
  }

  refused(error: Error): RefusedError {
    return refusedBy(this.server, error);
  }

  /** What to tell a caller whose call takes too long. */
  get late(): LockUnavailableError {
    return this.#unreachable({ sent: true });
  }

  /** @internal */
  replied(call: Call, reply: unknown): void {
    this.#inFlight.delete(call);
    this.#lastError = undefined;
    call.succeed(reply);
  }

  /** @internal */
  failed(call: Call, error: Error): void {
    if (call.settled) return;
    if (error.name !== 'ReplyError') this.#park(call, error);
    else if (error.message.startsWith('NOSCRIPT')) this.#write(call, true);
    else this.#fail(call, this.refused(error));
  }

  /** @internal */
  sentAgain(): void {
    this.#resends++;
    this.#topology.announceChange();
  }

  #write(call: Call, withSource: boolean): void {
    if (this.#cluster.status !== 'ready') return this.#park(call);
    ClusterCommand.sendTo(this.#cluster, call, withSource, this);
  }

  readonly #nodeFailed = (error: Error): void => {
    this.#lastError = withoutCommand(error);
  };

  #park(call: Call, error?: Error): void {
    if (error) this.#lastError = withoutCommand(error);
    if (this.#isClosed || this.#cluster.status === 'end') return this.#fail(call, this.#unreachable(call));
    this.open();
    this.#parked.add(call);
    this.#tryAgain ??= atRoot(() => setTimeout(() => this.#flush(), TRY_AGAIN_MS));
  }

  #flush(): void {
    clearTimeout(this.#tryAgain);
    this.#tryAgain = undefined;
    const parked = [...this.#parked];
    this.#parked.clear();
    for (const call of parked) {
      if (call.sent) this.sentAgain();
      this.#write(call, false);
    }
  }

  #fail(call: Call, error: LockUnavailableError): void {
    this.#parked.delete(call);
    this.#inFlight.delete(call);
    if (this.#parked.size === 0) {
      clearTimeout(this.#tryAgain);
      this.#tryAgain = undefined;
    }
    call.fail(error);
  }

  #unreachable({ sent }: Pick<Call, 'sent'>): LockUnavailableError {
    const isClosed = this.#isClosed || this.#cluster.status === 'end';
    const message = isClosed
      ? 'The connection to the Redis Cluster has been closed.'
      : `The Redis Cluster did not do it within ${this.#timeoutMs} ms: the node of this key is down or slow, or its slot is being moved. Look at "CLUSTER INFO" and at the load of the nodes, or raise "commandTimeout".${this.#lastError ? ` It said: ${diagnosis(this.#lastError)}` : ''}`;
    return sent ? new LockUnavailableError(message, this.#lastError) : new NotSentError(message, this.#lastError);
  }
}
