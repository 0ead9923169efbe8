import { otherPermits } from '../../errors/lock-options.error.js';
import {
  fenceCountFor,
  hasLocalWaiters,
  permitsOf,
  type AcquireCommand,
  type Busy,
  type Cancellation,
  type Granted,
} from '../../store/lock-store.js';
import type { Connection } from '../connection/connection.js';
import { RefusedError } from '../connection/connection-errors.js';
import { grantOf } from '../lua/locks.script.js';
import type { WakeChannel } from '../wake/wake-channel.js';
import { kindOf } from '../wire/lock-kind.js';
import type { LateCopies } from './late-copies.js';
import type { Verb } from './lock-operation.js';
import type { Operations, Transport } from './transport.js';

/** What acquires need. */
interface AcquireParts {
  readonly transport: Transport;
  readonly channel: WakeChannel;
  readonly lateCopies: LateCopies;
  readonly cancel: (command: Cancellation) => void;
}

/** Sends acquires, and handles their replies. Nobody queues before this process can hear of its turn. */
export class Acquires {
  readonly #redis: Connection;
  readonly #batch: Operations;
  readonly #channel: WakeChannel;
  readonly #lateCopies: LateCopies;
  readonly #cancel: (command: Cancellation) => void;

  constructor({ transport, channel, lateCopies, cancel }: AcquireParts) {
    this.#redis = transport.redis;
    this.#batch = transport.batch;
    this.#channel = channel;
    this.#lateCopies = lateCopies;
    this.#cancel = cancel;
  }

  /** @throws LockUnavailableError, or LockOptionsError when the key is shared with another number of permits */
  acquire(command: AcquireCommand): Promise<Granted | Busy> {
    if (this.#channel.state === 'new' && command.queue) return this.#acquireFirst(command);
    if (this.#channel.state === 'new') void this.#channel.open();
    return this.#acquire(this.#verbFor(command), command);
  }

  /**
   * Acquires while the channel is new. Nobody queues before this process can hear of its turn, or its place would go
   * to the next.
   */
  async #acquireFirst(command: AcquireCommand): Promise<Granted | Busy> {
    void this.#channel.open();
    if (!hasLocalWaiters(command.token)) {
      const reply = await this.#acquire('try', command);
      if (reply.granted) return reply;
    }
    await this.#channel.opened();
    return this.#acquire(this.#verbFor(command), command);
  }

  #verbFor({ queue, token, polls }: AcquireCommand): Verb {
    if (!queue) return polls ? 'poll' : 'try';
    if (this.#channel.state !== 'up') return 'unsubscribed';
    return hasLocalWaiters(token) ? 'handoff' : 'queue';
  }

  #acquire(verb: Verb, command: AcquireCommand): Promise<Granted | Busy> {
    const { epoch } = this.#redis;
    return new Promise((resolve, reject) =>
      this.#batch.add({
        verb,
        lock: command,
        // Only a caller that may queue has a label there.
        kind: kindOf(command.queue ? command : { ...command, label: undefined }),
        done: (reply) => {
          if (typeof reply === 'number') {
            if (command.isQueued && !command.wasOffered) this.#channel.checkAlive();
            this.#lateCopies.settled(command, epoch);
            resolve(grantOf(reply, fenceCountFor(command.token))!);
          } else if ('permits' in reply) {
            this.#cancel(command);
            reject(otherPermits(command.keys, permitsOf(command.sharing)!, reply.permits));
          } else {
            this.#lateCopies.busy(command, epoch);
            resolve(reply);
          }
        },
        failed: (error) => {
          if (error instanceof RefusedError) {
            this.#lateCopies.settled(command, epoch);
            this.#cancel(command);
          } else this.#lateCopies.failed(command, epoch, error);
          reject(error);
        },
      }),
    );
  }
}
