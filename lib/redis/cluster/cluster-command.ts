import type { Cluster } from 'ioredis';
import { PlainCall, type Call } from '../connection/plain-call.js';
import { ScriptCommand, type Outcome } from '../connection/script-command.js';
import { nodeToAsk } from './masters.js';

/** Receives the outcome of a command in a cluster. */
export interface ClusterOutcome extends Outcome {
  /**
   * The client resends the command by itself, because it was redirected or its connection dropped: it may have run
   * before.
   */
  resent(slot: number | undefined): void;
  /** A node refused the command because it counts the cluster as down. The client sends it again by itself. */
  saidDown(call: Call, error: Error): void;
  /** The slot of the command is being moved: nobody can run it now, and it must be sent again a little later. */
  tryLater(call: Call): void;
}

/** What a node says that refuses all keys, because nobody serves some of them. */
const DOWN = 'CLUSTERDOWN The cluster is down';

/** What a node says to which a command was sent after an ASK, and which does not import the slot. */
const ELSEWHERE = /^(MOVED|ASK|CLUSTERDOWN) /;

/** An ASKING needs no reply: that of the command behind it tells all. */
const NOT_AWAITED: Outcome = { replied: () => undefined, failed: () => undefined };

/** A command that knows its slot. */
export class ClusterCommand extends ScriptCommand {
  readonly #call: Call;
  readonly #outcome: ClusterOutcome;
  #sent = false;

  private constructor(call: Call, outcome: ClusterOutcome) {
    super(call, outcome);
    this.#call = call;
    this.#outcome = outcome;
  }

  static sendTo(cluster: Cluster, call: Call, outcome: ClusterOutcome): void {
    const command = new ClusterCommand(call, outcome);
    ScriptCommand.pass(cluster, command);
    // The client has set this handler, which follows redirects.
    const follow = command.reject;
    command.reject = (error) => {
      const { message } = error;
      if (call.isImpatient && message.startsWith('TRYAGAIN')) return outcome.failed(call, error);
      if (message.startsWith('ASK ')) return command.#ask(cluster, message);
      if (message.startsWith(DOWN)) outcome.saidDown(call, error);
      follow(error);
    };
  }

  /**
   * Follows an ASK in place of the client. The client sends an ASKING and lets go of its promise, which ends the
   * process when the node dies. Only impatient calls are sent there: the others name a key that never exists, so that
   * node refuses them until it has the slot.
   */
  #ask(cluster: Cluster, redirect: string): void {
    const [call, outcome] = [this.#call, this.#outcome];
    if (!call.isImpatient || call.settled || cluster.status !== 'ready') return outcome.tryLater(call);
    this.reject = (error) => {
      if (ELSEWHERE.test(error.message)) outcome.tryLater(call);
      else outcome.failed(call, error);
    };
    const node = nodeToAsk(cluster, redirect);
    ScriptCommand.send(node, new PlainCall(['ASKING']), NOT_AWAITED);
    ScriptCommand.pass(node, this);
  }

  /** Returns the slot, for the client; null lets it choose any node. */
  getSlot(): number | null {
    return this.#call.slot ?? null;
  }

  override toWritable(): string {
    if (this.#sent) this.#outcome.resent(this.#call.slot);
    this.#sent = true;
    return super.toWritable();
  }
}
