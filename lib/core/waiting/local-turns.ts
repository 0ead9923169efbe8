import { refusal, signalsOf, type LockRequest, type Obstacle, type Refusal } from '../request/lock-request.js';
import { holderOf } from '../request/lock-token.js';
import type { LocalQueue } from './local-queue.js';
import type { WaitTracker } from './wait-tracker.js';

/** What the callers of this process have in common while they wait for a turn. */
export interface WaitContext {
  readonly startedAt: number;
  /** `host:pid` of this process, to name the holder. */
  readonly holder: string;
  readonly tracker: WaitTracker;
}

/** What a caller gets that is told of its turn, or is handed the lock itself. */
export type TurnOr<HandedOff> = HandedOff | 'turn';

const TURN = (): 'turn' => 'turn';

/** Finds the queue of a key. */
export type QueueOf<HandedOff> = (key: string) => LocalQueue<HandedOff>;

/**
 * Takes the turns of all keys of the request. Waits for busy keys one by one, and holds no turn meanwhile, so that
 * others can use its free keys. When it has waited as many times as it has keys, and others were faster each time, it
 * takes the turns in the fixed order of the keys and holds what it has: so it gets in, and no two calls wait for each
 * other. A request of one key may be handed the lock itself.
 *
 * @throws the reason of a signal that aborts, or what the caller in front failed with
 */
export async function enterKeys<HandedOff>(
  queueOf: QueueOf<HandedOff>,
  request: LockRequest,
  context: WaitContext,
): Promise<TurnOr<HandedOff> | Refusal> {
  const { keys } = request;
  const tryEnterAll = (but?: string): boolean => {
    const others = keys.filter((key) => key !== but);
    if (!others.every((key) => queueOf(key).isFree(key))) return false;
    for (const key of others) queueOf(key).tryEnter(key);
    return true;
  };
  const waits = keys.length === 1 ? 0 : keys.length;
  for (let waited = 0; waited < waits; waited++) {
    if (tryEnterAll()) return 'turn';
    const busy = keys.find((key) => !queueOf(key).isFree(key))!;
    const entry = await enterKey(busy, queueOf(busy), request, context);
    if (entry !== 'turn' || tryEnterAll(busy)) return entry;
    leaveKeys(queueOf, [busy]);
  }
  return enterInOrder(queueOf, request, context);
}

/**
 * Takes one turn after the other, and holds those it has while it waits for the next; leaves them when it can't get
 * one.
 */
async function enterInOrder<HandedOff>(
  queueOf: QueueOf<HandedOff>,
  request: LockRequest,
  context: WaitContext,
): Promise<TurnOr<HandedOff> | Refusal> {
  const entered: string[] = [];
  try {
    for (const key of request.keys) {
      const queue = queueOf(key);
      let entry: TurnOr<HandedOff> | Refusal = 'turn';
      if (!queue.tryEnter(key)) {
        // A caller that only tries one of these keys need not wait for the end of this.
        for (const before of entered) queueOf(before).setStage(before, 'waiting');
        entry = await enterKey(key, queue, request, context);
      }
      if (entry !== 'turn') {
        leaveKeys(queueOf, entered);
        return entry;
      }
      entered.push(key);
    }
    return 'turn';
  } catch (error) {
    leaveKeys(queueOf, entered);
    throw error;
  }
}

/** Gives the turns of these keys to the next callers. */
export function leaveKeys(queueOf: QueueOf<unknown>, keys: readonly string[]): void {
  for (const key of keys) queueOf(key).leave(key);
}

/**
 * Waits for the turn of one busy key of the request, for as long as the request allows.
 *
 * @throws the reason of a signal that aborts, or what the caller in front failed with
 */
export function enterKey<HandedOff>(
  key: string,
  queue: LocalQueue<HandedOff>,
  request: LockRequest,
  context: WaitContext,
): Promise<TurnOr<HandedOff> | Refusal> {
  return enterKeyThen(TURN, key, queue, request, context);
}

/** The same for a caller that does something in its turn, in its own async context: what that makes is the result. */
export function enterKeyThen<Entered, HandedOff>(
  takeTurn: () => Entered | Promise<Entered>,
  key: string,
  queue: LocalQueue<HandedOff>,
  request: LockRequest,
  context: WaitContext,
): Promise<HandedOff | Entered | Refusal> {
  const { waitMs, maxWaiters } = request;
  const { startedAt, tracker } = context;
  if (waitMs === 0) return enterAfterFront(takeTurn, key, queue, request, context);
  const ahead = queue.waiterCount(key);
  const holder = queue.isInside(key) ? context.holder : undefined;
  if (ahead >= maxWaiters)
    return Promise.resolve(
      refusal('too-many-waiters', request, startedAt, { holder, ahead, leaseLeftMs: queue.leaseLeftMs(key) }),
    );
  request.onWait?.({ holder, ahead, token: queue.holderToken(key) });
  return tracker.during(request, (findDeadlock) => {
    const late = () => enterAfterFront(takeTurn, key, queue, request, context, { ahead, deadlock: findDeadlock() });
    return queue.enter(key, {
      request,
      untilMs: startedAt + waitMs,
      signals: signalsOf(request),
      takeTurn,
      late,
    });
  });
}

/**
 * For a caller that does not wait, or no longer: finds out only how the first try of the caller in front ends, and
 * enters if that one got nothing. Before, nobody knows whether the key is busy or the store is down.
 */
async function enterAfterFront<Entered>(
  takeTurn: () => Entered | Promise<Entered>,
  key: string,
  queue: LocalQueue<unknown>,
  request: LockRequest,
  { startedAt, holder }: WaitContext,
  waited?: Pick<Obstacle, 'ahead' | 'deadlock'>,
): Promise<Entered | Refusal> {
  let isAnswered: boolean;
  do {
    isAnswered = await queue.firstTryOfFront(key, signalsOf(request), request);
    if (queue.tryEnter(key)) return takeTurn();
    // Where nobody was in front, another that does not wait was faster, and is in front now. What the store has
    // answered once is enough: callers that asked one after the other would take a round trip each.
  } while (!isAnswered && queue.isTrying(key));
  const facts = {
    holder: queue.isInside(key) ? holder : holderOf(queue.holderToken(key) ?? ''),
    ahead: queue.waiterCount(key),
    leaseLeftMs: queue.leaseLeftMs(key),
    ...waited,
  };
  return refusal('held', request, startedAt, facts);
}
