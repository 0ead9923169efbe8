import type { Cluster, Command } from 'ioredis';
import type { Call } from '../connection/plain-call.js';
import { ScriptCommand, type Outcome } from '../connection/script-command.js';

/** Hears what becomes of a command in a cluster. */
export interface ClusterOutcome extends Outcome {
  /** The client sends it again by itself: it was redirected, or its connection was lost; it may have run before. */
  resent(): void;
}

/** A command that knows where in a cluster it has to go. */
export class ClusterCommand extends ScriptCommand {
  readonly #slot: number | undefined;
  readonly #resent: () => void;
  #sent = false;

  private constructor(call: Call, withSource: boolean, outcome: ClusterOutcome) {
    super(call, withSource, outcome);
    this.#slot = call.slot;
    this.#resent = () => outcome.resent();
  }

  static sendTo(cluster: Cluster, call: Call, withSource: boolean, outcome: ClusterOutcome): void {
    const command = new ClusterCommand(call, withSource, outcome);
    void cluster.sendCommand(command as unknown as Command);
    if (!call.isImpatient) return;
    // The client's own, which follows redirects.
    const follow = command.reject;
    command.reject = (error) => (error.message.startsWith('TRYAGAIN') ? outcome.failed(call, error) : follow(error));
  }

  /** Asked by the client; any node may have what has no slot. */
  getSlot(): number | null {
    return this.#slot ?? null;
  }

  override toWritable(): string {
    if (this.#sent) this.#resent();
    this.#sent = true;
    return super.toWritable();
  }
}
