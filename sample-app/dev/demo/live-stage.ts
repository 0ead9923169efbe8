import { setTimeout as sleep } from 'node:timers/promises';
import type { DemoNews, StageAction, StageView } from '../../src/demo-page/demo-messages.js';
import { reason } from '../../src/errors/reason.js';
import type { ChildProcesses } from '../processes/child-processes.js';
import { ShopClient, type Answer } from '../scenarios/shop-client.js';
import { startActor, type Actor, type LateWrite } from './stage-processes.js';

const PROCESSES = 3;
const NAMES = ['A', 'B', 'C', 'D', 'E', 'F'];
const CLIENTS_OF_EACH = 2;
const START_BALANCE = 10_000;

/** So that a viewer can follow the lock, and need not wait long after a crash. */
const LEASE = '2 s';
const SLOW = { FRAUD_CHECK_MS: '150', LOCK_LEASE: LEASE, LOCK_WAIT: '10s' };
const STALL_MS = 4_000;
const REDIS_AWAY_MS = 5_000;

/** How often the page hears how it looks, in ms. */
const TELL_EVERY_MS = 100;

/** How long a client waits that was refused, in ms. */
const BREATH_MS = 300;

/** A stage that nobody ends does so itself, in ms. */
const LONGEST_MS = 300_000;

export interface LiveStageParts {
  readonly children: ChildProcesses;
  readonly env: NodeJS.ProcessEnv;
  readonly pauseRedis: ((ms: number) => void) | undefined;
  readonly tell: (news: DemoNews) => void;
}

/**
 * A few processes whose clients withdraw from one account, for as long as the viewer likes. The viewer kills the one
 * that holds the lock, stalls it, takes Redis away.
 */
export class LiveStage {
  readonly #parts: LiveStageParts;
  readonly #actors: Actor[] = [];
  readonly #ending = new AbortController();
  readonly #waits: number[] = [];
  readonly #clients: Promise<void>[] = [];
  #account = '';
  #seen: { readonly balance: number | null; readonly lost: number } = { balance: null, lost: 0 };
  #done = 0;
  #refused = 0;
  /** What happens to the next process that gets the lock. */
  #next: ((actor: Actor) => void) | undefined;
  #added = 0;
  #killed: { readonly victim: Actor; readonly at: number } | undefined;
  #redisBackAt = Infinity;
  /** The look at the balance that is under way. */
  #looking: Promise<void> | undefined;

  constructor(parts: LiveStageParts) {
    this.#parts = parts;
  }

  /** Runs until `act('stop')`. Leaves no process behind. */
  async run(): Promise<void> {
    const { signal } = this.#ending;
    try {
      await Promise.all(Array.from({ length: PROCESSES }, () => this.#add()));
      const { id } = await this.#shop(this.#actors[0]!).ask<{ id: number }>({
        method: 'POST',
        path: '/accounts',
        body: { owner: 'Stage', balance: START_BALANCE },
      });
      this.#account = `/accounts/${id}`;
      this.#say(`${PROCESSES} processes withdraw from one account, as fast as the lock lets them.`);
      for (const actor of this.#actors) this.#letClientsCome(actor);
      const longest = sleep(LONGEST_MS, undefined, { signal }).catch(() => undefined);
      void longest.then(() => this.#ending.abort());
      while (!signal.aborted) {
        this.#looking ??= this.#look().finally(() => (this.#looking = undefined));
        this.#parts.tell({ news: 'stage', ...this.#view() });
        await sleep(TELL_EVERY_MS);
      }
    } finally {
      this.#ending.abort();
      await Promise.all(this.#clients);
      await this.#looking;
      if (this.#account) await this.#tellTheEnd();
      await Promise.all(this.#actors.map((actor) => actor.stop()));
    }
  }

  act(action: StageAction): void {
    if (action === 'stop') this.#ending.abort();
    if (action === 'kill') this.#next = (actor) => this.#kill(actor);
    if (action === 'stall') this.#next = (actor) => actor.stallBeforeTheNextWrite(STALL_MS);
    if (action === 'redis') this.#takeRedisAway();
    if (action === 'add') void this.#join();
  }

  async #add(): Promise<Actor> {
    const { children, env } = this.#parts;
    const name = NAMES[this.#added++]!;
    const actor = await startActor(
      name,
      children,
      { ...env, ...SLOW },
      {
        acquired: (actor) => this.#acquired(actor),
        stalls: (actor, ms) =>
          this.#say(`${actor.name} stands still for ${ms / 1000} s, right before it writes. Its lease is ${LEASE}.`),
        wroteLate: (actor, outcome) => this.#wroteLate(actor, outcome),
      },
    );
    this.#actors.push(actor);
    return actor;
  }

  async #join(): Promise<void> {
    if (this.#added === NAMES.length) return this.#say(`${NAMES.length} processes are enough.`);
    try {
      const actor = await this.#add();
      this.#say(`${actor.name} has joined.`);
      this.#letClientsCome(actor);
    } catch (error) {
      this.#say(`No process could be added: ${reason(error)}`);
    }
  }

  #kill(actor: Actor): void {
    actor.kill();
    this.#killed = { victim: actor, at: performance.now() };
    this.#say(`${actor.name} was killed while it held the lock. Redis keeps it until its lease of ${LEASE} ends.`);
  }

  #takeRedisAway(): void {
    const { pauseRedis } = this.#parts;
    if (!pauseRedis) return this.#say('This Redis is yours, so it stays.');
    pauseRedis(REDIS_AWAY_MS);
    this.#redisBackAt = performance.now() + REDIS_AWAY_MS;
    this.#say(`Redis is away for ${REDIS_AWAY_MS / 1000} s. Nobody gets in: requests are answered 503.`);
  }

  #acquired(actor: Actor): void {
    const killed = this.#killed;
    this.#killed = undefined;
    if (killed) {
      const seconds = ((performance.now() - killed.at) / 1000).toFixed(1);
      this.#say(`${actor.name} got the lock ${seconds} s after ${killed.victim.name} had died.`);
      killed.victim.leaseEnded();
    }
    const next = this.#next;
    this.#next = undefined;
    next?.(actor);
  }

  #wroteLate({ name }: Actor, outcome: LateWrite): void {
    if (outcome === 'refused by its fence') {
      this.#say(`${name} woke up and wrote. The database refused: another one has written with a larger fence.`);
    } else this.#say(`${name} woke up. Its write was ${outcome}: nobody else had got the lock meanwhile.`);
  }

  #letClientsCome(actor: Actor): void {
    for (let client = 0; client < CLIENTS_OF_EACH; client++) this.#clients.push(this.#comeAgainAndAgain(actor));
  }

  async #comeAgainAndAgain(actor: Actor): Promise<void> {
    const { signal } = this.#ending;
    const shop = this.#shop(actor);
    const path = `${this.#account}/withdraw`;
    while (actor.isAlive && !signal.aborted) {
      const [answer] = await shop.crowd(1, { method: 'POST', path, body: { amount: 1 } });
      this.#note(actor, answer!);
      if (answer!.status !== 200) await sleep(BREATH_MS);
    }
  }

  #note(actor: Actor, { status, ms }: Answer): void {
    if (status !== 200) this.#refused++;
    else {
      this.#done++;
      actor.done++;
      this.#waits.push(ms);
      if (this.#waits.length > 30) this.#waits.shift();
    }
    if (status === 200 && performance.now() > this.#redisBackAt) {
      this.#redisBackAt = Infinity;
      this.#say('Redis is back, and all go on by themselves.');
    }
  }

  /** Reads the balance from a process that lives, one look at a time. */
  async #look(): Promise<void> {
    const actor = this.#actors.find(({ view }) => view.state === 'running');
    if (!actor) return;
    try {
      // All that was confirmed before this look is in what it sees.
      const expected = START_BALANCE - this.#done;
      const { balance } = await this.#shop(actor).ask<{ balance: number }>({ path: this.#account });
      this.#seen = { balance, lost: Math.max(0, balance - expected) };
    } catch {
      // It was killed meanwhile: the next look asks another one.
    }
  }

  /** So that the page ends with what is in the database. */
  async #tellTheEnd(): Promise<void> {
    await this.#look();
    this.#parts.tell({ news: 'stage', ...this.#view() });
  }

  #view(): StageView {
    const sorted = [...this.#waits].sort((a, b) => a - b);
    const actors = [...this.#actors].sort((a, b) => a.name.localeCompare(b.name));
    return {
      processes: actors.map(({ view }) => view),
      ...this.#seen,
      expected: START_BALANCE - this.#done,
      done: this.#done,
      refused: this.#refused,
      waitMs: Math.round(sorted[sorted.length >> 1] ?? 0),
      ownsRedis: this.#parts.pauseRedis !== undefined,
    };
  }

  #shop(actor: Actor): ShopClient {
    return new ShopClient([actor.url]);
  }

  #say(text: string): void {
    this.#parts.tell({ news: 'seen', text });
  }
}
