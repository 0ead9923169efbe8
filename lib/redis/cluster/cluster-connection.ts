import type { Cluster, Redis } from 'ioredis';
import { atRoot } from '../../clock/root-context.js';
import { SharedTimer } from '../../clock/shared-timer.js';
import type { LockUnavailableError } from '../../errors/lock-unavailable.error.js';
import { Connection, type PublishedOver, type ServerReply } from '../connection/connection.js';
import { refusedBy } from '../connection/connection-errors.js';
import type { OutageLog } from '../connection/outage-log.js';
import { PlainCall, type Call } from '../connection/plain-call.js';
import { withoutCommand } from '../connection/redis-diagnosis.js';
import { AwaitedCall } from '../connection/script-call.js';
import { SecondOpinion } from '../connection/second-opinion.js';
import { HOLDERS_OF } from '../lua/holders-of.script.js';
import type { LuaScript } from '../lua/lua-script.js';
import { AllNodes } from './all-nodes.js';
import { ClientEnd } from './client-end.js';
import { ClusterCommand } from './cluster-command.js';
import { isLate, noReply, silentNode, unreachable } from './cluster-errors.js';
import { slotOf } from './cluster-slot.js';
import { Doubts } from './doubts.js';
import { knownNames, masterName, masterOf, nodeName } from './masters.js';
import { connecting, ownCluster } from './own-cluster.js';
import { SilentNodes } from './silent-nodes.js';
import { Topology } from './topology.js';

interface Surroundings {
  readonly log: Pick<OutageLog, 'deserted'>;
  /** Called when the cluster can be used, and whether it changed or was away before. */
  readonly onReady: (reconnected: boolean) => void;
  readonly slotOfKey: (key: string) => number;
}

/** How long to wait before a call that the client gave up on is sent again, in ms. */
const TRY_AGAIN_MS = 100;

/**
 * Runs scripts on a cluster, through the app's client. The client follows redirects and finds the new master after a
 * failover. A call that it gives up on is sent again until the command time-out is over. One node that is down does
 * not affect calls to the others. While a node hangs, calls for its keys fail fast.
 */
export class ClusterConnection extends Connection {
  readonly server = 'cluster';
  readonly database = 0;
  readonly findsMaster = true;
  readonly isToOneServer = false;
  readonly #around: Surroundings;
  #cluster!: Cluster;
  #allNodes!: AllNodes;
  #topology!: Topology;
  #silentNodes!: SilentNodes;
  #doubts!: Doubts;
  #end!: ClientEnd;
  readonly #secondOpinion: SecondOpinion<Cluster>;
  /** Whether a client of our own has taken the place of the app's. */
  #isAlone = false;
  readonly #tryAgain = new SharedTimer();
  #lastError: Error | undefined;
  #resends = 0;
  readonly #resendsIn = new Map<number | undefined, number>();
  #isClosed = false;

  constructor(cluster: Cluster, commandTimeoutMs: number, around: Surroundings) {
    super(commandTimeoutMs);
    this.#secondOpinion = new SecondOpinion(commandTimeoutMs);
    this.#around = around;
    this.#use(cluster);
  }

  /** The client over which calls go: the app's, or a client of our own. */
  get client(): Cluster {
    return this.#cluster;
  }

  /** Grows whenever a call may have run twice, or a slot may be served by another node. */
  get epoch(): number {
    return this.#resends + this.#topology.changes;
  }

  /** Changes whenever a call of these slots may have run twice, or another node may serve one of them. */
  stateOf(slots: readonly number[]): string {
    return slots.map((slot) => `${this.#resendsIn.get(slot)} ${masterName(this.#cluster, slot)}`).join();
  }

  /** Runs a script on the node of its first key; on any node, if it has none. */
  override run<Reply>(
    script: LuaScript<Reply>,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<Reply> {
    return this.start(this.#callIn(script, keys, args));
  }

  /** As `run`, but fails at once with `TRYAGAIN` when the slot moves and the keys are not all on one node. */
  attempt<Reply>(
    script: LuaScript<Reply>,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<Reply> {
    const call = this.#callIn(script, keys, args);
    call.isImpatient = true;
    return this.start(call);
  }

  /** Sends a call. While its node is silent, it fails at once, unless a probe is due: then it is the probe. */
  override send(call: Call): void {
    const silent = this.#silentNodes.beforeSending(call);
    if (silent) return call.fail(this.noteOutage(silentNode(silent, call)));
    super.send(call);
  }

  /**
   * Publishes over a node that replies, as far as that is known: the client would choose any. Resolves with 1, because
   * a message reaches the subscribers of all nodes, but a node counts only its own.
   */
  async publish(channel: string, message: string, { key, besides }: PublishedOver = {}): Promise<number> {
    const slot =
      key === undefined ? this.#doubts.slotForMessage(besides && nodeName(besides)) : this.#around.slotOfKey(key);
    try {
      await this.start(new PlainCall(['PUBLISH', channel, message], slot));
    } catch (error) {
      this.#doubts.messageFailed(slot);
      throw error;
    }
    return 1;
  }

  /** Runs the command on each node, replicas too: after a failover, subscriptions may be on any. */
  override async commandOnAll(...words: string[]): Promise<readonly ServerReply[]> {
    if (!this.#isClosed) this.#connect();
    const replies = await this.#allNodes.ask(words, async (node, ask) => {
      const reply = await this.inTime(ask).catch((error: Error) => this.#noReplyOf(node, error));
      return { server: nodeName(node), reply };
    });
    return replies.length > 0 ? replies : [{ server: this.server, reply: this.#unreachable({ sent: false }) }];
  }

  #noReplyOf(node: Redis, error: Error): LockUnavailableError {
    if (error.name === 'ReplyError') return refusedBy(nodeName(node), error);
    // A node that is down, or not ready yet, says so by itself.
    if (isLate(error) && node.status === 'ready' && !this.#isClosed) void this.#askOtherwise(node);
    // Another node may have taken its place.
    this.lookForMasters();
    return noReply(error);
  }

  /**
   * Makes sure that the masters of these locks reply, as far as that is in doubt: who takes the keys of one slot, and
   * then waits for the next one, keeps others from them. Returns nothing when it is not in doubt.
   *
   * @param locks one of each slot, with its companions
   * @throws LockUnavailableError
   */
  reach(locks: readonly (readonly string[])[]): Promise<unknown> | undefined {
    const looks = locks
      .map((names) => this.#doubts.settle(slotOf(names[0]!), () => this.run(HOLDERS_OF, names, [])))
      .filter((look) => look !== undefined);
    return looks.length > 0 ? Promise.all(looks) : undefined;
  }

  /**
   * Notes in an error which keys nobody gets: all, while the client is not connected; or those of masters which are
   * down.
   *
   * @param slots those of which one got no reply in time
   * @param stuck a slot of which nobody gets the keys either
   */
  noteOutage<Failure extends Error>(
    error: Failure,
    slots: readonly (number | undefined)[] = [],
    stuck?: number,
  ): Failure {
    return this.#doubts.cover(error, slots, this.#around.slotOfKey, stuck);
  }

  close(): void {
    this.#isClosed = true;
    this.#secondOpinion.close();
    this.#leave();
    this.#tryAgain.clear();
    for (const call of this.inFlight.clear()) this.expire(call);
    if (this.#isAlone) this.#cluster.disconnect();
  }

  protected get late(): LockUnavailableError {
    return this.#unreachable({ sent: true });
  }

  /** @internal */
  saidDown(call: Call, error: Error): void {
    this.#doubts.saidDown(call);
    this.#lastError = withoutCommand(error);
  }

  /** A call met a slot that is being moved. @internal */
  tryLater(call: Call): void {
    if (!call.settled) this.park(call);
  }

  /** The client resends a call by itself. @internal */
  resent(slot: number | undefined): void {
    this.#resends++;
    this.#resendsIn.set(slot, (this.#resendsIn.get(slot) ?? 0) + 1);
    this.#topology.announceChange();
  }

  #callIn<Reply>(script: LuaScript<Reply>, keys: readonly string[], args: readonly (string | number)[]) {
    const call = new AwaitedCall(script, keys, args, this);
    call.slot = keys.length > 0 ? slotOf(keys[0]!) : undefined;
    return call;
  }

  protected write(call: Call): void {
    if (this.#cluster.status !== 'ready') return this.park(call);
    ClusterCommand.sendTo(this.#cluster, call, this);
  }

  protected park(call: Call, error?: Error): void {
    if (error) this.#lastError = withoutCommand(error);
    if (this.#isClosed) return this.expire(call);
    this.#connect();
    this.parked.add(call);
    if (!this.#tryAgain.isSet) this.#tryAgain.set(TRY_AGAIN_MS, () => this.#resendParked());
  }

  protected expire(call: Call): void {
    const silent = this.#silentNodes.expired(call);
    if (silent && !this.#isClosed) void this.#askOtherwise(silent);
    this.lookForMasters();
    this.#failInSlot(call);
  }

  #failInSlot(call: Call): void {
    this.fail(call, this.noteOutage(this.#unreachable(call), [call.slot], call.slot));
  }

  protected noteReply(call: Call): void {
    this.#lastError = undefined;
    // What the client sends again when nobody waits for it any more is a PING: its reply says nothing of the slot.
    if (!call.settled) this.#doubts.replied(call);
    this.#silentNodes.look();
  }

  protected override fail(call: Call, error: LockUnavailableError): void {
    super.fail(call, error);
    if (this.parked.size === 0) this.#tryAgain.clear();
  }

  /**
   * Lets the client read anew which node serves which slot. It does so by itself when a node redirects it or closes the
   * connection, but a master whose host is gone does neither: the client would go on asking it, though a replica has
   * taken over.
   */
  lookForMasters(): void {
    if (!this.#isClosed && this.#cluster.status === 'ready') atRoot(() => this.#cluster.refreshSlotsCache());
  }

  #use(cluster: Cluster): void {
    this.#cluster = cluster;
    this.#allNodes = new AllNodes(cluster, this.timeoutMs);
    // Releases that a silent node did not get are sent when it replies.
    this.#silentNodes = new SilentNodes(cluster, this.timeoutMs, () => this.#topology.announceChange());
    this.#doubts = new Doubts(cluster, this.#silentNodes);
    this.#end = new ClientEnd(cluster, () => this.#clientEnded());
    cluster.on('node error', this.#nodeFailed);
    this.#topology = new Topology(cluster, (reconnected) => {
      this.#around.onReady(reconnected || this.#isAlone);
      this.#resendParked();
    });
  }

  #leave(): void {
    this.#cluster.off('node error', this.#nodeFailed);
    this.#end.close();
    this.#topology.close();
  }

  /**
   * Goes on over a client of our own when the app has closed the one that it lends. Apps do that when they shut down,
   * mostly before the last locks are released.
   */
  #goOnAlone(): void {
    if (this.#isAlone) return;
    // The nodes that the app has named may all be gone by now.
    this.#goOnWith(ownCluster(this.#cluster, knownNames(this.#cluster), this.timeoutMs / 4));
  }

  /** Sends again at once what waits for the app's client. One of our own is given time between two tries. */
  #clientEnded(): void {
    if (!this.#isAlone && this.parked.size > 0) this.#resendParked();
  }

  /**
   * Goes on over a client of our own, or a new one, when a node replies to that, and not over the connection that the
   * present one has. The app's client stays as it is.
   *
   * The new one reads the slots from that node alone, so no other that hangs costs time. It is as patient as the app's
   * client, which may be far away from the cluster.
   */
  async #askOtherwise(node: Redis): Promise<void> {
    const cluster = this.#cluster;
    // What another client got no reply to says nothing of this one.
    if (!cluster.nodes('all').includes(node)) return;
    const name = nodeName(node);
    const make = () => ownCluster(cluster, [name], cluster.options.slotsRefreshTimeout!);
    const own = await this.#secondOpinion.ask(node, make, (further) => connecting(further, name));
    if (!own) return;
    if (this.#isClosed || this.#cluster !== cluster) return own.disconnect();
    if (this.#isAlone) cluster.disconnect();
    else this.#around.log.deserted(name);
    const stuck = [...this.inFlight].filter((call) => masterOf(cluster, call.slot) === node && !this.parked.has(call));
    this.#goOnWith(own);
    this.#around.onReady(true);
    this.#resendParked();
    // Not sent again: the silent connection may still deliver them, and both replies would come.
    for (const call of stuck) this.#failInSlot(call);
  }

  #goOnWith(own: Cluster): void {
    this.#leave();
    this.#resends += this.#topology.changes;
    this.#isAlone = true;
    this.#use(own);
  }

  #connect(): void {
    if (this.#end.hasEnded) this.#goOnAlone();
    if (this.#cluster.status !== 'wait' && !this.#end.hasEnded) return;
    atRoot(() => this.#cluster.connect()).catch(() => undefined);
  }

  readonly #nodeFailed = (error: Error): void => {
    this.#lastError = withoutCommand(error);
  };

  #resendParked(): void {
    this.#tryAgain.clear();
    if (this.#end.look()) this.#goOnAlone();
    for (const call of this.unpark()) {
      if (call.sent) this.resent(call.slot);
      this.write(call);
    }
  }

  #unreachable(call: Pick<Call, 'sent'>): LockUnavailableError {
    return unreachable(call, this.#isClosed ? 'closed' : this.#cluster.status, this.timeoutMs, this.#lastError);
  }
}
