import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { clearTimeout, setInterval, setTimeout } from 'node:timers';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';

/** Replies with the last of the new fences, or with 0 while somebody else has the key. */
const TAKE = `
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end
return redis.call('INCRBY', KEYS[2], ARGV[3])
`;
const GIVE_BACK = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0";
const RENEW = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('PEXPIRE', KEYS[1], ARGV[2]) or 0";

/** How many callers have the key, one after the other, before it goes back to Redis for a moment. */
const FENCES = 64;
const WAIT_MS = 120_000;
const RETRY_MS = 10;

/** What the process has in Redis, and the callers of the process that it goes to next. */
class Place {
  token = '';
  endsAt = 0;
  fence = 0;
  fencesLeft = 0;
  waiters = new Set();

  constructor(key) {
    this.key = key;
  }
}

/** A lock that one caller holds. */
class Held {
  constructor(place) {
    this.place = place;
    this.key = place.key;
    this.token = place.token;
    this.fence = place.fence++;
    place.fencesLeft--;
  }

  get isHeld() {
    return this.token === this.place.token && performance.now() < this.place.endsAt;
  }
}

/**
 * A queue of callers in one process, in front of one lock in Redis: the least that keeps there what a lock of ours
 * promises while nothing fails: an owner, a fence for each caller, a deadline for each wait, renewal, an end by our own
 * clock, and an async context that knows what it holds. Other processes only get in between two runs of hand-offs, and
 * have no queue.
 */
async function open(url, { leaseMs }) {
  const redis = new Redis(url);
  redis.defineCommand('takeKey', { numberOfKeys: 2, lua: TAKE });
  redis.defineCommand('giveBackKey', { numberOfKeys: 1, lua: GIVE_BACK });
  redis.defineCommand('renewKey', { numberOfKeys: 1, lua: RENEW });
  const instance = randomUUID();
  const context = new AsyncLocalStorage();
  const places = new Map();
  let count = 0;

  async function take(place) {
    const until = performance.now() + WAIT_MS;
    while (performance.now() < until) {
      const token = `${instance}.${++count}`;
      const askedAt = performance.now();
      const last = await redis.takeKey(place.key, '{}:fence', token, leaseMs, FENCES);
      if (last) {
        Object.assign(place, { token, endsAt: askedAt + leaseMs, fence: last - FENCES + 1, fencesLeft: FENCES });
        return new Held(place);
      }
      await sleep(RETRY_MS);
    }
    throw new Error(`${place.key} is held`);
  }

  function wait(place) {
    return new Promise((resolve, reject) => {
      const waiter = { resolve, reject, timer: undefined };
      waiter.timer = setTimeout(() => {
        place.waiters.delete(waiter);
        reject(new Error(`${place.key} is held`));
      }, WAIT_MS);
      place.waiters.add(waiter);
    });
  }

  function nextOf({ waiters }) {
    const [next] = waiters;
    if (next) {
      waiters.delete(next);
      clearTimeout(next.timer);
    }
    return next;
  }

  async function enter(key) {
    const place = places.get(key);
    if (place) return wait(place);
    const fresh = new Place(key);
    places.set(key, fresh);
    return takeFor(fresh);
  }

  /** Takes the key for one caller. If that fails, the next one tries. */
  async function takeFor(place) {
    try {
      return await take(place);
    } catch (error) {
      goOn(place);
      throw error;
    }
  }

  function goOn(place) {
    const next = nextOf(place);
    if (next) takeFor(place).then(next.resolve, next.reject);
    else places.delete(place.key);
  }

  function leave({ place, isHeld }) {
    if (isHeld && place.fencesLeft > 0 && performance.now() < place.endsAt - leaseMs / 2) {
      const next = nextOf(place);
      if (next) return next.resolve(new Held(place));
    }
    const { key, token } = place;
    place.token = '';
    const givenBack = redis.giveBackKey(key, token);
    goOn(place);
    return givenBack;
  }

  function renewAll() {
    for (const place of places.values()) {
      const { key, token } = place;
      if (!token) continue;
      const sentAt = performance.now();
      redis.renewKey(key, token, leaseMs).then(
        (isOurs) => {
          if (place.token === token) place.endsAt = isOurs ? sentAt + leaseMs : 0;
        },
        () => undefined,
      );
    }
  }

  setInterval(renewAll, leaseMs / 3).unref();

  return {
    async section(key, work) {
      if (context.getStore()?.key === key) return work();
      const lock = await enter(key);
      try {
        if (!lock.isHeld) throw new Error(`${key} is lost`);
        return await context.run(lock, work, lock);
      } finally {
        await leave(lock);
      }
    },
  };
}

export const forms = { whole: open };
