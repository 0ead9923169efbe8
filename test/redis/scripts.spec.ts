import { afterEach, beforeEach, describe, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { scriptBench, type ScriptBench } from '../support/scripts/script-bench.js';
import { SCRIPT_CASES } from '../support/scripts/script-cases.js';
import { withRedis } from '../support/redis/with-redis.js';

describe('The Lua scripts', () => {
  let redis: Redis;
  let bench: ScriptBench;

  withRedis((one) => ({ redis } = one));

  beforeEach(() => {
    bench = scriptBench(redis);
  });

  afterEach(() => bench.close());

  it.each(Object.entries(SCRIPT_CASES))('the Lua scripts %s', (_what, holds) => holds(bench));
});
