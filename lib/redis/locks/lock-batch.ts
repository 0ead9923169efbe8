import { nextTick } from '../../clock/next-tick.js';
import type { LockUnavailableError } from '../../errors/lock-unavailable.error.js';
import { fenceCountFor, hasLocalWaiters } from '../../store/lock-store.js';
import type { Connection } from '../connection/connection.js';
import { mayBeAboutOne } from '../connection/connection-errors.js';
import { ScriptCall, type ScriptArguments } from '../connection/script-call.js';
import type { LuaScript } from '../lua/lua-script.js';
import { fenceBefore, type LocksReply } from '../lua/locks.script.js';
import type { KeyNames } from '../wire/key-names.js';
import { bulk, bulkHeader } from '../wire/resp.js';
import { FenceFloor } from './fence-floor.js';
import { encodedVerb, type LockOperation } from './lock-operation.js';

/**
 * How many keys one call of the script may have, unless a single operation has more: Redis does nothing else
 * meanwhile.
 */
const LARGEST = 128;

/** The fewest operations of a half: below that, a second call costs more than it gains. */
const SMALLEST_HALF = 48;

/** The operations of one call, and their encoded keys and arguments: V8 adds to a text faster than it joins pieces. */
interface Batch {
  readonly operations: LockOperation[];
  keys: string;
  keyCount: number;
  args: string;
}

/** The script of a batch, and in a cluster where it runs. */
export interface BatchTarget {
  /** The key of the fence counter there. */
  readonly fenceCounter: string;
  /** In a cluster, a key that never exists, after the fence counter: see `ClusterNames.absentIn`. */
  readonly absent?: string;
  readonly script: LuaScript<LocksReply>;
  readonly slot: number | undefined;
  /** Whether it is one of the nodes of a quorum. */
  readonly isNode: boolean;
}

/** Collects the operations of one tick and sends them as one call of the locks script. */
export class LockBatch {
  /** @internal */
  readonly target: BatchTarget;
  readonly #redis: Connection;
  readonly #names: KeyNames;
  readonly #fenceFloor: FenceFloor;
  /** The keys that each call begins with. */
  readonly #first: string;
  readonly #firstCount: number;
  #batches: Batch[] = [];
  /** How many operations have been sent, and have no reply yet. */
  #operationsInFlight = 0;
  /**
   * How many operations a call may have: half of those in flight, so that Redis works on one half while this process
   * works on the other.
   */
  #largestHalf = LARGEST;
  /** The size of the batch that was replied to last: where many operations come at once, the next ones do too. */
  #lastSize = 1;
  /** The lease that was encoded last: most are the same. */
  #leaseMs = -1;
  #lease = '';

  constructor(redis: Connection, names: KeyNames, target: BatchTarget) {
    this.target = target;
    this.#redis = redis;
    this.#names = names;
    this.#first = bulk(target.fenceCounter) + (target.absent === undefined ? '' : bulk(target.absent));
    this.#firstCount = target.absent === undefined ? 1 : 2;
    this.#fenceFloor = new FenceFloor(redis, target.isNode, () => this.#send(this.#newBatch()));
  }

  /** Makes every later fence larger than this one. */
  raise(fence: number): void {
    this.#fenceFloor.raise(fence);
  }

  close(): void {
    this.#fenceFloor.close();
  }

  /**
   * Sends an operation together with all others of this tick. Sends it at once if it is alone, no call is in flight,
   * and no other operation of the same lock is to follow.
   *
   * @throws LockKeyError for a key that is a name which the library uses itself
   */
  add(operation: LockOperation): void {
    const { keys, token } = operation.lock;
    for (const key of keys) this.#names.check(key);
    if (this.#batches.length === 0 && this.#lastSize === 1 && this.#redis.isIdle && !hasLocalWaiters(token)) {
      const batch = this.#newBatch();
      this.#put(operation, batch);
      return this.#send(batch);
    }
    let batch = this.#batches.at(-1);
    if (!batch || this.#isFull(batch, keys.length)) {
      batch = this.#newBatch();
      if (this.#batches.push(batch) === 1) nextTick(this.#flush);
    }
    this.#put(operation, batch);
  }

  #isFull({ keyCount, operations }: Batch, newKeys: number): boolean {
    return (keyCount - this.#firstCount) / 2 + newKeys > LARGEST || operations.length >= this.#largestHalf;
  }

  #newBatch(): Batch {
    return { operations: [], keys: this.#first, keyCount: this.#firstCount, args: '' };
  }

  #put(operation: LockOperation, batch: Batch): void {
    const { keys, token, leaseMs } = operation.lock;
    for (const key of keys) batch.keys += this.#names.encode(key);
    batch.keyCount += 2 * keys.length;
    if (leaseMs !== this.#leaseMs) {
      this.#leaseMs = leaseMs;
      this.#lease = `\r\n${bulk(leaseMs)}`;
    }
    batch.args += encodedVerb(operation) + bulkHeader(token.length) + token + this.#lease;
    batch.operations.push(operation);
  }

  readonly #flush = (): void => {
    const batches = this.#batches;
    this.#batches = [];
    for (const batch of batches) this.#send(batch);
    const half = Math.ceil(this.#operationsInFlight / 2);
    this.#largestHalf = half < SMALLEST_HALF ? LARGEST : half;
  };

  #send(batch: Batch): void {
    this.#operationsInFlight += batch.operations.length;
    this.#redis.send(new BatchCall(batch, this));
  }

  /**
   * Sends each operation alone, so that one bad operation does not spoil the others of its tick. Each may have run
   * already.
   */
  #sendEach(operations: readonly LockOperation[]): void {
    for (const operation of operations) {
      const batch = this.#newBatch();
      operation.resent = true;
      this.#put(operation, batch);
      this.#send(batch);
    }
  }

  /** @internal */
  encode({ keys, keyCount, args, operations }: Batch, resent: boolean): ScriptArguments {
    const first = this.#fenceFloor.nextOperation(resent);
    return { text: keys + first + args, keyCount, count: keyCount + 3 * (operations.length + (first ? 1 : 0)) };
  }

  /** @internal */
  settle(operations: readonly LockOperation[], reply: unknown): void {
    const { length } = operations;
    this.#lastSize = length;
    this.#operationsInFlight -= length;
    const before = fenceBefore(reply, length);
    if (before !== undefined) return this.#allDone(operations, before);
    const replies = length === 1 ? [reply] : Array.isArray(reply) && reply.length === length ? reply : undefined;
    for (let index = 0; index < length; index++) {
      // Another number of replies is not to these operations: none of it may pass for a grant.
      const decoded = this.target.script.decode(replies ? replies[index] : `${String(reply)}, to ${length} operations`);
      const operation = operations[index]!;
      if (decoded instanceof Error) operation.failed(this.#redis.refused(decoded));
      else this.#done(operation, decoded);
    }
  }

  /** Settles operations of which each was granted, or released the one key that it held. */
  #allDone(operations: readonly LockOperation[], before: number): void {
    let fence = before + 1;
    for (const operation of operations) {
      if (operation.verb === 'release') operation.done(1);
      else {
        this.#done(operation, fence);
        fence += fenceCountFor(operation.lock.token);
      }
    }
  }

  #done(operation: LockOperation, reply: Exclude<LocksReply, Error>): void {
    if (this.target.isNode && typeof reply === 'number') this.#noteFences(operation, reply);
    operation.done(reply);
  }

  /** Notes the fences that a node of a quorum gave. */
  #noteFences({ verb, lock: { token } }: LockOperation, reply: number): void {
    if (verb === 'try' || verb === 'poll') this.#fenceFloor.gave(Math.abs(reply) + fenceCountFor(token) - 1);
  }

  /** @internal */
  failed(operations: readonly LockOperation[], error: LockUnavailableError): void {
    this.#fenceFloor.forget();
    this.#operationsInFlight -= operations.length;
    if (mayBeAboutOne(error, operations)) this.#sendEach(operations);
    else for (const operation of operations) operation.failed(error);
  }
}

/** The call that carries a batch. */
class BatchCall extends ScriptCall {
  readonly #batch: Batch;
  readonly #sender: LockBatch;

  constructor(batch: Batch, sender: LockBatch) {
    super(sender.target.script);
    this.#batch = batch;
    this.#sender = sender;
  }

  get slot(): number | undefined {
    return this.#sender.target.slot;
  }

  protected encodeArguments(resent: boolean): ScriptArguments {
    return this.#sender.encode(this.#batch, resent);
  }

  protected onReply(reply: unknown): void {
    this.#sender.settle(this.#batch.operations, reply);
  }

  protected onError(error: LockUnavailableError): void {
    this.#sender.failed(this.#batch.operations, error);
  }

  protected override onLateReply(): void {
    for (const operation of this.#batch.operations) operation.repliedLate?.();
  }
}
