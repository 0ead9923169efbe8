import { parseArgs } from 'node:util';
import { readGivenEnvironment } from '../src/config/environment.js';
import type { DemoOutcome } from '../src/demo-page/demo-messages.js';
import { reason } from '../src/errors/reason.js';
import { startServices } from './launcher/services.js';
import { ChildProcesses } from './processes/child-processes.js';
import { startDemoShops } from './processes/demo-shops.js';
import { Progress } from './race/progress.js';
import { isRight, runRace } from './race/race-result.js';
import { report } from './race/report.js';
import { scenariosNamed } from './scenarios/all.js';
import { ShopClient } from './scenarios/shop-client.js';

const APPS = 4;

const children = new ChildProcesses();
const interrupted = new AbortController();

/** @throws Error that says what is wrong with the arguments */
function options() {
  const { values } = parseArgs({
    options: { scenario: { type: 'string', default: 'balance' }, json: { type: 'boolean', default: false } },
  });
  return { scenarios: scenariosNamed(values.scenario), json: values.json };
}

async function race(): Promise<boolean> {
  const { scenarios, json } = options();
  const say = json ? () => undefined : console.log;
  const services = await startServices(children, readGivenEnvironment(process.env), { say });
  const started = await Promise.all(startDemoShops(APPS, children, services.env));

  const progress = new Progress();
  const apps = started.map((app) => app.report.url);
  const shop = new ShopClient(apps, { stop: interrupted.signal, onProgress: progress.answered });
  await shop.warmUp();
  const results: DemoOutcome[] = [];
  for (const scenario of scenarios) {
    say(`\n${scenario.story}, over ${APPS} processes`);
    for (const lock of [false, true]) {
      progress.start(`${scenario.name} ${lock ? 'with' : 'without'} the lock`);
      results.push(await runRace(scenario, shop, lock));
      progress.end();
    }
    say(report(results.slice(-2)));
  }
  if (json) console.log(JSON.stringify(results, undefined, 2));
  return results.every((result) => !result.lock || isRight(result));
}

function interrupt(): void {
  interrupted.abort();
  void children.exit(1);
}

process.on('SIGINT', interrupt).on('SIGTERM', interrupt);
try {
  const areRight = await race();
  await children.exit(areRight ? 0 : 1);
} catch (error) {
  if (!children.isStopping) console.error(reason(error));
  await children.exit(1);
}
