import { afterEach, beforeEach, describe, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { scriptBench, type ScriptBench } from '../support/scripts/script-bench.js';
import { LOCKS } from '../../lib/redis/lua/locks.script.js';
import { CONTENDED_CASES } from '../support/scripts/contended-cases.js';
import { withoutContendedPath } from '../support/scripts/contended-path.js';
import { SCRIPT_CASES } from '../support/scripts/script-cases.js';
import { withRedis } from '../support/redis/with-redis.js';

describe('The Lua scripts', () => {
  let redis: Redis;
  let bench: ScriptBench;
  let general: ScriptBench;

  withRedis((one) => ({ redis } = one));

  beforeEach(() => {
    bench = scriptBench(redis);
    general = scriptBench(redis, withoutContendedPath(LOCKS));
  });

  afterEach(() => {
    bench.close();
    general.close();
  });

  // The one of the contended path compares thousands of calls.
  it.each(Object.entries(SCRIPT_CASES))('the Lua scripts %s', (_what, holds) => holds(bench), 120_000);

  it.each(Object.entries(SCRIPT_CASES).filter(([what]) => !(what in CONTENDED_CASES)))(
    'the Lua scripts without the contended path %s',
    (_what, holds) => holds(general),
  );
});
