import { LIVE_STAGE, type DemoCommand, type DemoNews, type DemoScenario } from '../../src/demo-page/demo-messages.js';
import { reason } from '../../src/errors/reason.js';
import type { ChildProcesses } from '../processes/child-processes.js';
import { startDemoShops } from '../processes/demo-shops.js';
import { runRace } from '../race/race-result.js';
import { SCENARIOS, scenariosNamed } from '../scenarios/all.js';
import type { Scenario } from '../scenarios/scenario.js';
import { ShopClient } from '../scenarios/shop-client.js';
import { LiveStage } from './live-stage.js';

const PROCESSES = 3;

/** How often the page hears of progress at most, in ms. */
const TELL_EVERY_MS = 50;

interface DemonstrationsParts {
  readonly children: ChildProcesses;
  /** Where the processes find the database, Redis and the bank. */
  readonly env: NodeJS.ProcessEnv;
  /** Takes Redis away for a while; undefined for one that was given. */
  readonly pauseRedis: ((ms: number) => void) | undefined;
  readonly tell: (news: DemoNews) => void;
}

/** Runs demonstrations for the page: real processes, started for each and ended after it. */
export class Demonstrations {
  readonly #parts: DemonstrationsParts;
  #stage: LiveStage | undefined;

  constructor(parts: DemonstrationsParts) {
    this.#parts = parts;
  }

  /** What the page shows before anything runs. */
  static readonly ready: DemoNews = {
    news: 'ready',
    scenarios: SCENARIOS.map(({ name, title, story, why, lock }): DemoScenario => ({
      name,
      title,
      story,
      why,
      lock,
    })),
  };

  /** Never rejects: what goes wrong is told. */
  async obey(command: DemoCommand): Promise<void> {
    if (command.command === 'run') return this.#tellEndOf(command.scenario, () => this.#run(command.scenario));
    if (command.action === 'start') return this.#tellEndOf(LIVE_STAGE, () => this.#live());
    this.#stage?.act(command.action);
  }

  async #tellEndOf(scenario: string, run: () => Promise<void>): Promise<void> {
    const { tell } = this.#parts;
    try {
      await run();
      tell({ news: 'ended', scenario });
    } catch (error) {
      tell({ news: 'failed', scenario, reason: reason(error) });
    }
  }

  #run(name: string): Promise<void> {
    const [scenario] = scenariosNamed(name);
    return this.#withProcesses((apps) => this.#show(scenario!, apps));
  }

  async #live(): Promise<void> {
    this.#stage = new LiveStage(this.#parts);
    await this.#stage.run().finally(() => (this.#stage = undefined));
  }

  async #withProcesses(show: (apps: readonly string[]) => Promise<void>): Promise<void> {
    const { children, env } = this.#parts;
    const starting = startDemoShops(PROCESSES, children, env);
    try {
      const started = await Promise.all(starting);
      await show(started.map(({ report }) => report.url));
    } finally {
      await Promise.all(starting.map((one) => one.then((app) => app.stop()).catch(() => undefined)));
    }
  }

  /** Without the lock and with it: at once, unless one would disturb the other. */
  async #show(scenario: Scenario, apps: readonly string[]): Promise<void> {
    this.#parts.tell({ news: 'began', scenario: scenario.name, processes: apps.length });
    const half = (lock: boolean): Promise<void> => this.#showHalf(scenario, apps, lock);
    if (!scenario.runsAlone) await Promise.all([half(false), half(true)]);
    else for (const lock of [false, true]) await half(lock);
  }

  async #showHalf(scenario: Scenario, apps: readonly string[], lock: boolean): Promise<void> {
    const { tell } = this.#parts;
    const startedAt = performance.now();
    let toldAt = -Infinity;
    const shop = new ShopClient(apps, {
      followsFigures: true,
      onProgress: (answered, of, figure) => {
        const now = performance.now();
        if (answered < of && now - toldAt < TELL_EVERY_MS) return;
        toldAt = now;
        tell({ news: 'progress', scenario: scenario.name, lock, answered, of, ms: now - startedAt, figure });
      },
    });
    await shop.warmUp();
    tell({ news: 'outcome', ...(await runRace(scenario, shop, lock)) });
  }
}
