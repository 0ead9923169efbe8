import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash, randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { setInterval } from 'node:timers';
import { Redis } from 'ioredis';

/**
 * KEYS: the fence counter; the key of each operation; then their queues. ARGV: for each operation, the token, and the
 * lease to take the key for, or nothing to give it back. Replies with the fence, or with 0 to who has to wait.
 */
const TAKE_OR_GIVE_BACK = `
local call, replies, count, granted = redis.call, {}, #ARGV / 2, {}
local someoneWaits = call('EXISTS', unpack(KEYS, count + 2)) > 0
for i = 1, count do
  local key, queue, token, lease = KEYS[i + 1], KEYS[count + i + 1], ARGV[2 * i - 1], ARGV[2 * i]
  local isWaitedFor = someoneWaits and call('EXISTS', queue) == 1
  if lease ~= '' then
    if not isWaitedFor and call('SET', key, token, 'NX', 'PX', lease) then
      granted[#granted + 1] = i
    else
      call('RPUSH', queue, token)
      someoneWaits = true
    end
    replies[i] = 0
  elseif call('GET', key) ~= token then
    replies[i] = 0
  elseif not isWaitedFor then
    replies[i] = call('DEL', key)
  else
    local waiter, channel
    repeat
      waiter = call('LPOP', queue)
      channel = waiter and string.match(waiter, '^[^.]*')
    until not waiter or call('PUBSUB', 'NUMSUB', channel)[2] > 0
    if waiter then
      call('SET', key, waiter, 'PX', 5000)
      call('PUBLISH', channel, waiter .. ' ' .. call('INCR', KEYS[1]))
    else
      call('DEL', key)
    end
    replies[i] = 1
  end
end
if #granted > 0 then
  local before = call('INCRBY', KEYS[1], #granted) - #granted
  for i = 1, #granted do replies[granted[i]] = before + i end
end
return replies
`;
const SHA = createHash('sha1').update(TAKE_OR_GIVE_BACK).digest('hex');
const RENEW = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('PEXPIRE', KEYS[1], ARGV[2]) or 0";

const TIMEOUT_MS = 10_000;

/** A lock that is held. */
class Held {
  constructor(key, token, fence, endsAt) {
    this.key = key;
    this.token = token;
    this.fence = fence;
    this.endsAt = endsAt;
  }
}

/** The locks that are held, each in a place of its own: a Map whose entries come and go costs a fifth in garbage. */
class HeldLocks {
  #places = [];
  #free = [];

  add(lock) {
    const place = this.#free.pop() ?? this.#places.length;
    this.#places[place] = lock;
    return place;
  }

  remove(place) {
    this.#places[place] = undefined;
    this.#free.push(place);
  }

  all() {
    return this.#places.filter((lock) => lock !== undefined);
  }
}

/**
 * The least that keeps what a lock of ours promises while nothing fails: a fence; a queue, whose next waiter is looked
 * for and notified; a deadline for each call; renewal; an end by our own clock; and an async context that knows what it
 * holds. All calls of a tick go into one script. It does not outlive a lost connection or counter, nor a holder that
 * dies, and has no options.
 */
async function open(url, { leaseMs }) {
  const redis = new Redis(url);
  const ears = new Redis(url);
  await redis.script('LOAD', TAKE_OR_GIVE_BACK);
  redis.defineCommand('renewHeld', { numberOfKeys: 1, lua: RENEW });
  const instance = randomUUID();
  const context = new AsyncLocalStorage();
  const held = new HeldLocks();
  const turns = new Map();
  const early = new Map();
  const inFlight = new Set();
  let count = 0;
  let calls = [];

  ears.on('message', (_channel, message) => {
    const [token, fence] = message.split(' ');
    const enter = turns.get(token);
    turns.delete(token);
    if (enter) enter(Number(fence));
    else early.set(token, Number(fence));
  });
  await ears.subscribe(instance);

  /** Waits to be handed the key: that message may have come before the reply. */
  function turnOf(token) {
    const fence = early.get(token);
    early.delete(token);
    return fence ?? new Promise((resolve) => turns.set(token, resolve));
  }

  function expireOld() {
    const tooOld = performance.now() - TIMEOUT_MS;
    for (const batch of inFlight) if (batch.sentAt < tooOld) fail(batch, new Error('Redis did not reply in time.'));
  }

  function renewAll() {
    const sentAt = performance.now();
    for (const lock of held.all()) {
      redis.renewHeld(lock.key, lock.token, leaseMs).then(
        (isOurs) => (lock.endsAt = isOurs ? sentAt + leaseMs : 0),
        () => undefined,
      );
    }
  }

  setInterval(expireOld, TIMEOUT_MS / 20).unref();
  setInterval(renewAll, leaseMs / 3).unref();

  function fail(batch, error) {
    inFlight.delete(batch);
    for (const { reject } of batch.sent) reject(error);
  }

  function flush() {
    const batch = { sent: calls, sentAt: performance.now() };
    calls = [];
    const keys = ['{}:fence'];
    const queues = [];
    const args = [];
    for (const { key, token, lease } of batch.sent) {
      keys.push(key);
      queues.push(`{${key}}:waiting`);
      args.push(token, lease);
    }
    inFlight.add(batch);
    redis.evalsha(SHA, keys.length + queues.length, ...keys, ...queues, ...args).then(
      (replies) => {
        inFlight.delete(batch);
        for (let at = 0; at < batch.sent.length; at++) batch.sent[at].resolve(replies[at]);
      },
      (error) => fail(batch, error),
    );
  }

  const ask = (key, token, lease) =>
    new Promise((resolve, reject) => {
      if (calls.push({ key, token, lease, resolve, reject }) === 1) process.nextTick(flush);
    });

  return {
    async section(key, work) {
      if (context.getStore()?.key === key) return work();
      const token = `${instance}.${++count}`;
      const askedAt = performance.now();
      const fence = (await ask(key, token, leaseMs)) || (await turnOf(token));
      const lock = new Held(key, token, fence, askedAt + leaseMs);
      const place = held.add(lock);
      try {
        if (performance.now() > lock.endsAt) throw new Error(`${key} is lost`);
        return await context.run(lock, work, lock);
      } finally {
        held.remove(place);
        lock.endsAt = (await ask(key, token, '')) ? lock.endsAt : 0;
      }
    },
  };
}

export const forms = { whole: open };
