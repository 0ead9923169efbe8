import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { figures, sized } from '../support/lab.js';
import { drawSchedule, runSchedule, type Schedule } from '../support/model/lock-schedule.js';
import { lockService, trustingQuorum, type ClosableLockService } from '../support/stores/lock-services.js';
import { Random } from '../support/model/random.js';
import { RedisServers } from '../support/redis/redis-servers.js';

/** `SEED=42` runs the schedule 42 and no other. */
const ONLY = process.env['SEED'];
const SEEDS = ONLY ? [Number(ONLY)] : Array.from({ length: sized(20, 1000) }, (_, index) => 1 + index);

const SERVICES = 3;
const NODES = 5;

/** How long a node stands still, in ms. */
const LONGEST_HANG_MS = 40;

/** A schedule for a store that serves nobody in strict order. */
function draw(seed: number): Schedule {
  const schedule = drawSchedule(seed, SERVICES, false);
  const random = new Random(-seed);
  const cuts = Array.from({ length: random.below(6) }, () => ({ of: 'ms', count: random.below(60) }) as const);
  return {
    ...schedule,
    cuts,
    calls: schedule.calls.map((call) => ({ ...call, options: { ...call.options, fair: false } })),
  };
}

describe('Whatever callers do, and whatever befalls the nodes of a quorum,', () => {
  let servers: RedisServers;

  beforeAll(async () => {
    servers = await RedisServers.start(NODES);
  });

  afterAll(() => servers.stop());

  it(
    'nobody holds a majority together with another one, fences grow, every call settles, and nothing is left',
    async () => {
      let grants = 0;
      let faults = 0;
      for (const seed of SEEDS) {
        const services: ClosableLockService[] = Array.from({ length: SERVICES }, () =>
          lockService(trustingQuorum(servers.urls, 500), { shutdownGrace: 0 }),
        );
        const trouble = new Trouble(servers, new Random(seed));
        const schedule = draw(seed);
        // To connect takes longer than the shortest lease: only a schedule with faults may lose a lock to that.
        if (schedule.cuts.length === 0) await Promise.all(services.map((service) => service.isLocked('connected')));
        const { wrong, grants: had } = await runSchedule(schedule, {
          services,
          cut: () => trouble.next(),
          ping: () => Promise.all(servers.clients.map((client) => client.ping())),
        });
        await trouble.over();
        const left = await servers.nothingLeft().then(
          () => [],
          (error: Error) => [error.message],
        );
        await Promise.all(services.map((service) => service.close()));
        expect({ replayWith: `SEED=${seed}`, wrong: [...wrong, ...left] }).toEqual({
          replayWith: `SEED=${seed}`,
          wrong: [],
        });
        await servers.reset();
        grants += had;
        faults += schedule.cuts.length;
      }
      figures('schedules on a quorum', { schedules: SEEDS.length, grants, faults });
    },
    sized(90_000, 3_600_000),
  );
});

/**
 * Hangs, disconnects and kills nodes, and lets them forget our scripts, so that calls are sent again. A node that was
 * killed stays away while the schedule lasts: it has forgotten its locks.
 */
class Trouble {
  readonly #servers: RedisServers;
  readonly #random: Random;
  readonly #timers = new Set<NodeJS.Timeout>();
  readonly #dying: Promise<void>[] = [];
  readonly #dead = new Set<number>();

  constructor(servers: RedisServers, random: Random) {
    this.#servers = servers;
    this.#random = random;
  }

  next(): void {
    const random = this.#random;
    const at = random.below(NODES);
    if (this.#dead.has(at)) return;
    const what = random.pick(['hang', 'disconnect', 'kill', 'forget the scripts'] as const);
    if (what === 'hang') this.#hang(at, random.below(LONGEST_HANG_MS));
    else if (what === 'disconnect')
      void this.#servers.clients[at]!.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes').catch(() => undefined);
    else if (what === 'kill') this.#kill(at);
    else void this.#servers.clients[at]!.script('FLUSH').catch(() => undefined);
  }

  async over(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    for (let at = 0; at < NODES; at++) this.#servers.goOn(at);
    await Promise.all(this.#dying);
  }

  #hang(at: number, ms: number): void {
    this.#servers.hang(at);
    this.#timers.add(setTimeout(() => this.#servers.goOn(at), ms));
  }

  #kill(at: number): void {
    this.#dead.add(at);
    this.#dying.push(this.#servers.kill(at));
  }
}
