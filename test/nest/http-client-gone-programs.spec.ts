import { AsyncLocalStorage } from 'node:async_hooks';
import { EventEmitter, once } from 'node:events';
import { type Server, request } from 'node:http';
import type { Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Controller, type INestApplication, Post } from '@nestjs/common';
import { type LockOptions, LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule, MemoryLockStore } from 'nest-redis-lock/testing';
import { deferred, turn, until } from '../support/deferred.js';
import { Random } from '../support/model/random.js';
import { type ClosableLockService, lockService } from '../support/stores/lock-services.js';
import { PLATFORMS, startApp } from './http-app.js';
import { oneAtATime } from './one-at-a-time.js';

const PROGRAMS = 100;
const MODES = ['exclusive', 'exclusive', 'write', 'read', 'permits'] as const;
type Mode = (typeof MODES)[number];
const PERMITS = 2;
/** Calls nest in the order of the keys, so they never wait for each other in a circle. */
const KEYS = 6;
const isTaken = (number: number): boolean => number % 2 === 1;

const events = new EventEmitter();

function lockOf(mode: Mode, number: number): [key: string, options: LockOptions] {
  if (mode === 'permits') return [`room:${number}`, { permits: PERMITS, wait: Infinity }];
  if (mode === 'exclusive') return [`account:${number}`, { wait: Infinity }];
  return [`tariff:${number}`, { mode, wait: Infinity }];
}

/** Its replies come after a while, when the caller may have ended. */
class SlowStore extends MemoryLockStore {
  readonly #random = new Random(1);

  override async acquire(command: Parameters<MemoryLockStore['acquire']>[0]) {
    for (let turns = this.#random.below(3); turns > 0; turns--) await turn();
    return super.acquire(command);
  }
}

/** The work of a lock. */
interface Work {
  readonly isAlone: boolean;
  readonly around: Work | undefined;
  state: 'runs' | 'ends' | 'has ended';
}

interface Wait {
  readonly key: string;
  /** Whether it began in the work of a lock that shares its key with nobody; unknown where that was just about to end. */
  readonly isInside: boolean | undefined;
  readonly beganBefore: boolean;
  outcome: 'waits' | 'got in' | 'ended';
}

/** Calls that nest at random in the handler of a request: one after the other, side by side, or forgotten. */
class Program {
  readonly waits: Wait[] = [];
  /** Opens when the client has left. */
  readonly gate = deferred();
  hasLeft = false;
  readonly #locks: LockService;
  readonly #random: Random;
  readonly #running = new AsyncLocalStorage<Work>();
  readonly #forgotten: Promise<unknown>[] = [];
  readonly #hasRun = deferred();

  constructor(locks: LockService, seed: number) {
    this.#locks = locks;
    this.#random = new Random(seed);
  }

  /** @param around the lock that the request holds */
  async run(around: Work | undefined, from: number): Promise<void> {
    events.emit('begun');
    const steps = () => this.#steps(from);
    await (around ? this.#running.run(around, steps) : steps());
    await this.gate.promise;
    this.#hasRun.resolve();
  }

  async end(): Promise<void> {
    await this.#hasRun.promise;
    while (this.#forgotten.length > 0) await Promise.all(this.#forgotten.splice(0));
  }

  async #steps(from: number): Promise<void> {
    const beside: Promise<unknown>[] = [];
    for (let left = from < KEYS ? this.#random.below(4) : 0; left > 0; left--) {
      const call = this.#call(from + this.#random.below(KEYS - from));
      const how = this.#random.below(3);
      if (how === 0) await call;
      else (how === 1 ? beside : this.#forgotten).push(call);
      for (let turns = this.#random.below(3); turns > 0; turns--) await turn();
      if (this.#random.chance(0.2)) await this.gate.promise;
    }
    await Promise.all(beside);
  }

  async #call(number: number): Promise<void> {
    const mode = this.#random.pick(MODES);
    const [key, options] = lockOf(mode, number);
    const around = this.#running.getStore();
    const wait: Wait = { key, isInside: isInside(around), beganBefore: !this.hasLeft, outcome: 'waits' };
    this.waits.push(wait);
    const work: Work = { isAlone: mode === 'exclusive' || mode === 'write', around, state: 'runs' };
    await this.#locks
      .withLock(
        key,
        async () => {
          wait.outcome = 'got in';
          await this.#running.run(work, () => this.#steps(number + 1));
          work.state = 'ends';
        },
        options,
      )
      .catch((error: unknown) => {
        expect(error).toMatchObject({ status: 499 });
        wait.outcome = 'ended';
      });
    work.state = 'has ended';
  }
}

function isInside(work: Work | undefined): boolean | undefined {
  let isAboutToEnd = false;
  for (let around = work; around; around = around.around) {
    if (!around.isAlone || around.state === 'has ended') continue;
    if (around.state === 'runs') return true;
    isAboutToEnd = true;
  }
  return isAboutToEnd ? undefined : false;
}

let program: Program;

@Controller()
class Programs {
  @Post('plain')
  plain() {
    return program.run(undefined, 0);
  }

  @Post('behind-middleware')
  behindMiddleware() {
    return program.run(undefined, 0);
  }

  @Post('request')
  @WithLock('account:0', { scope: 'request' })
  locked() {
    return program.run({ isAlone: true, around: undefined, state: 'runs' }, 1);
  }
}

describe.each(PLATFORMS)('on %s', (_platform, adapter) => {
  const store = new SlowStore();
  let app: INestApplication;
  let elsewhere: ClosableLockService;

  beforeAll(async () => {
    const imports = [LockTestingModule.forRoot({ store }), oneAtATime('behind-middleware')];
    app = await startApp(adapter, { imports, controllers: [Programs] });
    server().on('connection', (socket: Socket) => socket.once('close', () => events.emit('left')));
    elsewhere = lockService(store);
  });

  afterAll(async () => {
    await elsewhere.close();
    await app.close();
  });

  const server = () => app.getHttpServer() as Server;

  /** Takes some of the keys, in all modes. */
  async function takeKeys(): Promise<() => Promise<unknown>> {
    const numbers = Array.from({ length: KEYS }, (_, number) => number).filter(isTaken);
    const kinds = ['exclusive', 'write', ...Array<Mode>(PERMITS).fill('permits')] as const;
    const taken = await Promise.all(
      numbers.flatMap((number) => kinds.map((mode) => elsewhere.lock(...lockOf(mode, number)))),
    );
    return () => Promise.all(taken.map((lock) => lock.unlock()));
  }

  /** Waits until the program comes no further. */
  async function standstill(): Promise<void> {
    for (let known = -1, quiet = 0; quiet < 10; quiet++) {
      const state = program.waits.filter(({ outcome }) => outcome === 'got in').length * 1000 + program.waits.length;
      if (state !== known) [known, quiet] = [state, 0];
      await turn();
    }
  }

  it.each(['plain', 'behind-middleware', 'request'])(
    'a client that leaves ends the waits outside of locked work, and none inside, whatever its handler calls (%s)',
    async (path) => {
      const { port } = server().address() as { port: number };
      const ended = { inside: 0, outside: 0 };
      for (let seed = 1; seed <= PROGRAMS; seed++) {
        program = new Program(app.get(LockService), seed);
        const free = await takeKeys();
        const sent = request({ port, path: `/${path}`, method: 'POST', agent: false }).on('error', () => undefined);
        const begun = once(events, 'begun');
        sent.end();
        await begun;
        await standstill();

        const left = once(events, 'left');
        const waiting = program.waits.filter(({ outcome }) => outcome === 'waits');
        sent.destroy();
        await left;
        program.hasLeft = true;
        const outside = waiting.filter(({ isInside }) => isInside === false);
        await until(() => outside.every(({ outcome }) => outcome === 'ended'), 2000).catch(() => undefined);
        expect({ seed, waits: outside.filter(({ outcome }) => outcome !== 'ended') }).toEqual({ seed, waits: [] });

        program.gate.resolve();
        await standstill();
        await free();
        await program.end();
        const inside = program.waits.filter(({ isInside }) => isInside);
        expect({ seed, waits: inside.filter(({ outcome }) => outcome !== 'got in') }).toEqual({ seed, waits: [] });
        await until(async () => (await app.get(LockService).list()).locks.length === 0);
        ended.outside += outside.length;
        ended.inside += waiting.filter(({ isInside }) => isInside).length;
      }
      // So that the programs show something.
      if (path !== 'request') expect(ended.outside).toBeGreaterThan(20);
      expect(ended.inside).toBeGreaterThan(20);
    },
    60_000,
  );
});
