import type { Cluster } from 'ioredis';
import type { Call } from '../connection/plain-call.js';
import { ScriptCommand, type Outcome } from '../connection/script-command.js';

/** Receives the outcome of a command in a cluster. */
export interface ClusterOutcome extends Outcome {
  /**
   * The client resends the command by itself, because it was redirected or its connection dropped: it may have run
   * before.
   */
  resent(slot: number | undefined): void;
  /** A node refused the command because it counts the cluster as down. The client sends it again by itself. */
  saidDown(call: Call, error: Error): void;
}

/** What a node says that refuses all keys, because nobody serves some of them. */
const DOWN = 'CLUSTERDOWN The cluster is down';

/** A command that knows its slot. */
export class ClusterCommand extends ScriptCommand {
  readonly #slot: number | undefined;
  readonly #resent: () => void;
  #sent = false;

  private constructor(call: Call, withSource: boolean, outcome: ClusterOutcome) {
    super(call, withSource, outcome);
    this.#slot = call.slot;
    this.#resent = () => outcome.resent(call.slot);
  }

  static sendTo(cluster: Cluster, call: Call, withSource: boolean, outcome: ClusterOutcome): void {
    const command = new ClusterCommand(call, withSource, outcome);
    ScriptCommand.pass(cluster, command);
    // The client has set this handler, which follows redirects.
    const follow = command.reject;
    command.reject = (error) => {
      if (call.isImpatient && error.message.startsWith('TRYAGAIN')) return outcome.failed(call, error);
      if (error.message.startsWith(DOWN)) outcome.saidDown(call, error);
      follow(error);
    };
  }

  /** Returns the slot, for the client; null lets it choose any node. */
  getSlot(): number | null {
    return this.#slot ?? null;
  }

  override toWritable(): string {
    if (this.#sent) this.#resent();
    this.#sent = true;
    return super.toWritable();
  }
}
