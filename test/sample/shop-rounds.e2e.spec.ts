import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { isRight, runRace } from '../../sample-app/dev/race/race-result.js';
import { SCENARIOS } from '../../sample-app/dev/scenarios/all.js';
import { ShopClient } from '../../sample-app/dev/scenarios/shop-client.js';
import { sized } from '../support/lab.js';
import { SampleStack } from './sample-stack.js';

// The embedded Postgres takes seconds to start on a small machine, and 20 rounds take a minute.
jest.setTimeout(180_000);

// The page runs each once more in the gate: demo-runs.
const ROUNDS = sized(1, 20);

let stack: SampleStack;
let shop: ShopClient;

beforeAll(async () => {
  stack = await SampleStack.start();
  const options = { demoUnsafe: true, lockWait: '60s' } as const;
  const apps = [await stack.startApp(options), await stack.startApp(options)];
  shop = new ShopClient(apps);
});

afterAll(() => stack.stop());

describe.each(SCENARIOS.map((scenario) => [scenario.name, scenario] as const))('%s', (_, scenario) => {
  it(`with its lock it is right, in each round of ${ROUNDS}`, async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const result = await runRace(scenario, shop, true);
      expect({ ...result, isRight: isRight(result) }).toMatchObject({ accidents: 0, isRight: true });
    }
  });

  it(`without its lock there are accidents, in each round of ${ROUNDS}`, async () => {
    for (let round = 0; round < ROUNDS; round++) {
      expect((await runRace(scenario, shop, false)).accidents).toBeGreaterThan(0);
    }
  });
});
