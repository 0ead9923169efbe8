import { afterAll, beforeAll, describe, it } from '@jest/globals';
import fc from 'fast-check';
import { sized } from '../support/lab.js';
import { MemoryWorld } from '../support/model/memory-world.js';
import { answersAsModel } from '../support/model/program-property.js';
import type { ProgramWorld } from '../support/model/program-world.js';
import { startRedis, type RedisServer } from '../support/redis/redis-server.js';
import { RedisWorld } from '../support/model/redis-world.js';

/**
 * `SEED=42` draws the programs of that seed; with `AT=3:1:0`, which fast-check calls the path, only the one that
 * failed.
 */
const { SEED, AT } = process.env;

const check = (world: ProgramWorld, numRuns: number): Promise<void> =>
  fc.assert(answersAsModel(world), { numRuns, ...(SEED && { seed: Number(SEED) }), ...(AT && { path: AT }) });

describe('Random programs', () => {
  it(
    'the memory store replies to every random program as the model does, and leaves nothing behind',
    () => check(new MemoryWorld(), sized(500, 100_000)),
    sized(60_000, 3_600_000),
  );

  describe('on Redis', () => {
    let server: RedisServer;
    let world: RedisWorld;

    beforeAll(async () => {
      server = await startRedis();
      world = new RedisWorld(server);
      await world.open();
    });

    afterAll(async () => {
      await world.close();
      await server.stop();
    });

    it(
      'the store on Redis replies to every random program as the model does, and leaves nothing behind',
      () => check(world, sized(250, 20_000)),
      sized(60_000, 3_600_000),
    );
  });
});
