import { now } from '../../clock/deadline.js';
import { atRoot } from '../../clock/root-context.js';
import type { LockUnavailableError } from '../../errors/lock-unavailable.error.js';
import { hasLocalWaiters, type Busy, type OwnedLock } from '../../store/lock-store.js';
import type { KeyNames } from '../wire/key-names.js';
import type { LuaScript } from '../lua/lua-script.js';
import type { Connection } from '../connection/connection.js';
import { RefusedError } from '../connection/connection-errors.js';
import { bulk, bulkHeader } from '../wire/resp.js';
import { ScriptCall, type ScriptArguments } from '../connection/script-call.js';
import { type LocksReply, type OtherPermits } from '../lua/locks.script.js';

/** Keys in one call of the script, and so operations, but that one operation may have more: Redis does nothing else meanwhile. */
const LARGEST = 128;

/** How often the note of the last fence is brought up to the server's time at least, while locks are taken. */
const BRING_UP_EVERY_MS = 1000;

/** The same on the nodes of a quorum: a lock that ended on one without a word is followed by one of another, and only clocks are left to compare. */
const BRING_UP_NODE_EVERY_MS = 50;

/** What an operation does: see the locks script. */
export type Verb = (typeof VERBS)[number];

const VERBS = [
  'try',
  'poll',
  'queue',
  'handoff',
  'unsubscribed',
  'release',
  'keep',
  'cancel',
  'reserve',
  'upgrade',
  'downgrade',
  'force',
  'shorten',
] as const;

const ENCODED = Object.fromEntries(VERBS.map((verb) => [verb, bulk(verb)])) as Record<Verb, string>;

/** The operations that bring the note up, to the time, or at least to a number; they have neither a token nor a reply. */
const CLOCK = bulk('clock') + bulk('');
const RAISE = bulk('raise') + bulk('');

/** How long a number that all later fences must be above may wait for a call that carries it, in ms. */
const RAISE_WITHIN_MS = 10;

/** The kind of most locks. */
const PLAIN = 'exclusive';

/** One operation, and who wants to know what came of it. */
export interface LockOperation {
  readonly verb: Verb;
  readonly lock: OwnedLock;
  /** Which of the waiters of a key it is, where that matters: see `kindOf`. */
  readonly kind?: string;
  /** Whether it may have been done before, in a call that failed as a whole. */
  resent?: boolean;
  done(reply: number | Busy | OtherPermits): void;
  failed(error: LockUnavailableError): void;
}

/** The operations of one call, and their keys and arguments in pieces. */
interface Batch {
  readonly operations: LockOperation[];
  readonly keys: string[];
  keyCount: number;
  readonly args: string[];
}

/** What a script says when one of its operations met something unforeseen; other refusals are about the server as a whole. */
const ONE_IS_BAD = /^(ERR|WRONGTYPE|user_script:)/;

/** The script of a batch, and in a cluster where it runs. */
export interface Place {
  /** The note of the last fence there. */
  readonly note: string;
  /** In a cluster, a key that never exists, after the note: see `ClusterNames.absentIn`. */
  readonly absent?: string;
  readonly script: LuaScript<LocksReply>;
  readonly slot: number | undefined;
  /** Whether it is one of the nodes of a quorum. */
  readonly isNode: boolean;
}

/** Collects the operations of one tick and sends them as one call of the locks script. */
export class LockBatch {
  /** @internal */
  readonly place: Place;
  readonly #redis: Connection;
  readonly #names: KeyNames;
  /** The keys that each call begins with. */
  readonly #first: string;
  readonly #firstCount: number;
  #batches: Batch[] = [];
  /** Of the batch that was answered last: where many come at once, the next do too. */
  #lastSize = 1;
  /** The lease that was encoded last: most are the same. */
  #leaseMs = -1;
  #lease = '';
  #broughtUpAt = -Infinity;
  #broughtUpInEpoch = -1;
  readonly #bringUpEveryMs: number;
  /** All fences from now on must be above this number; and what the server was told last. */
  #floor = 0;
  #told = 0;
  #raising: NodeJS.Timeout | undefined;

  constructor(redis: Connection, names: KeyNames, place: Place) {
    this.place = place;
    this.#redis = redis;
    this.#names = names;
    this.#first = bulk(place.note) + (place.absent === undefined ? '' : bulk(place.absent));
    this.#firstCount = place.absent === undefined ? 1 : 2;
    this.#bringUpEveryMs = place.isNode ? BRING_UP_NODE_EVERY_MS : BRING_UP_EVERY_MS;
  }

  /** Lets all fences from now on be larger than this one: the next call carries it, or one of its own a moment later. */
  raise(fence: number): void {
    if (fence <= this.#floor) return;
    this.#floor = fence;
    this.#raising ??= atRoot(() => setTimeout(() => this.#raiseAlone(), RAISE_WITHIN_MS).unref());
  }

  #raiseAlone(): void {
    this.#raising = undefined;
    if (this.#told < this.#floor) this.#send(this.#empty());
  }

  close(): void {
    clearTimeout(this.#raising);
  }

  /**
   * Sends an operation with all others of this tick; at once, if it is alone, nothing is under way, and no other of the same
   * lock is to follow.
   *
   * @throws LockKeyError for a key that is one of our own names
   */
  add(operation: LockOperation): void {
    const { keys, token } = operation.lock;
    for (const key of keys) this.#names.check(key);
    if (this.#batches.length === 0 && this.#lastSize === 1 && this.#redis.isIdle && !hasLocalWaiters(token)) {
      const batch = this.#empty();
      this.#put(operation, batch);
      return this.#send(batch);
    }
    let batch = this.#batches.at(-1);
    if (!batch || (batch.keyCount - this.#firstCount) / 2 + keys.length > LARGEST) {
      batch = this.#empty();
      if (this.#batches.push(batch) === 1) process.nextTick(this.#flush);
    }
    this.#put(operation, batch);
  }

  #empty(): Batch {
    return { operations: [], keys: [this.#first], keyCount: this.#firstCount, args: [] };
  }

  #put(operation: LockOperation, batch: Batch): void {
    const { verb, lock, kind = PLAIN } = operation;
    const { keys, token, leaseMs } = lock;
    for (const key of keys) this.#names.encode(key, batch.keys);
    batch.keyCount += 2 * keys.length;
    const what = keys.length === 1 && kind === PLAIN ? ENCODED[verb] : bulk(`${verb} ${keys.length} ${kind}`);
    if (leaseMs !== this.#leaseMs) {
      this.#leaseMs = leaseMs;
      this.#lease = `\r\n${bulk(leaseMs)}`;
    }
    batch.args.push(what, bulkHeader(token.length), token, this.#lease);
    batch.operations.push(operation);
  }

  readonly #flush = (): void => {
    const batches = this.#batches;
    this.#batches = [];
    for (const batch of batches) this.#send(batch);
  };

  #send(batch: Batch): void {
    this.#redis.send(new BatchCall(batch, this));
  }

  /** @internal */
  failed(operations: readonly LockOperation[], error: LockUnavailableError): void {
    this.#broughtUpAt = -Infinity;
    this.#told = 0;
    if (operations.length > 1 && error instanceof RefusedError && ONE_IS_BAD.test(error.reply))
      this.#sendEach(operations);
    else for (const operation of operations) operation.failed(error);
  }

  /** So that one bad operation does not spoil the others of its tick. Each may have been done already. */
  #sendEach(operations: readonly LockOperation[]): void {
    for (const operation of operations) {
      const batch = this.#empty();
      operation.resent = true;
      this.#put(operation, batch);
      this.#send(batch);
    }
  }

  /** @internal */
  encode({ keys, keyCount, args, operations }: Batch, resent: boolean): ScriptArguments {
    const first = this.#bringsUp() || resent ? CLOCK : this.#told < this.#floor ? RAISE : undefined;
    if (first) this.#told = this.#floor;
    const text = keys.join('') + (first ? first + bulk(this.#floor) : '') + args.join('');
    return { text, keyCount, count: keyCount + 3 * (operations.length + (first ? 1 : 0)) };
  }

  /** @internal */
  settle(operations: readonly LockOperation[], reply: unknown): void {
    this.#lastSize = operations.length;
    const replies = operations.length > 1 && Array.isArray(reply) ? (reply as unknown[]) : operations.map(() => reply);
    for (let index = 0; index < operations.length; index++) {
      const answer = this.place.script.decode(replies[index]);
      if (answer instanceof Error) operations[index]!.failed(this.#redis.refused(answer));
      else operations[index]!.done(answer);
    }
  }

  /** Time for the note of the last fence to be brought up: some time has passed, or this may be another server than before. */
  #bringsUp(): boolean {
    const time = now();
    const { epoch } = this.#redis;
    if (epoch === this.#broughtUpInEpoch && time < this.#broughtUpAt + this.#bringUpEveryMs) return false;
    this.#broughtUpInEpoch = epoch;
    this.#broughtUpAt = time;
    return true;
  }
}

/** The call that carries a batch. */
class BatchCall extends ScriptCall {
  readonly #batch: Batch;
  readonly #sender: LockBatch;

  constructor(batch: Batch, sender: LockBatch) {
    super(sender.place.script);
    this.#batch = batch;
    this.#sender = sender;
  }

  get slot(): number | undefined {
    return this.#sender.place.slot;
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
}
