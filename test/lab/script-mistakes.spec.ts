import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { LuaScript } from '../../lib/redis/lua/lua-script.js';
import { HOLDERS_OF } from '../../lib/redis/lua/holders-of.script.js';
import { INSPECT } from '../../lib/redis/lua/inspect.script.js';
import { LOCKS } from '../../lib/redis/lua/locks.script.js';
import { PUBLISH } from '../../lib/redis/lua/publish.script.js';
import { RENEW, RENEW_IN_CLUSTER } from '../../lib/redis/lua/renew.script.js';
import { figures, LONG } from '../support/lab.js';
import { answersAsModel } from '../support/model/program-property.js';
import { startRedis, type RedisServer } from '../support/redis/redis-server.js';
import { RedisWorld } from '../support/model/redis-world.js';
import { scriptBench } from '../support/scripts/script-bench.js';
import { SCRIPT_CASES } from '../support/scripts/script-cases.js';
import { contendedPathOf, withoutContendedPath } from '../support/scripts/contended-path.js';
import { CLUSTER_LOCKS } from '../support/scripts/script-fixtures.js';
import { mistakesIn, type Mistake } from '../support/scripts/script-mistakes.js';

/** `ONLY=ZADD` tries only the mistakes that contain this. */
const ONLY = process.env['ONLY'];

/** Whether a line has an effect only in a cluster, though both scripts have it. */
const isForCluster = (line: string, within: string) =>
  /\bdeliveryIsUnknown\b/.test(line) || ['noteUnconfirmed', 'isSilent'].includes(within);

/** Whether this script has a line, too. */
function standsIn({ source }: LuaScript<unknown>): (line: string) => boolean {
  const lines = new Set(source.split('\n'));
  return (line) => lines.has(line);
}
const [inLocks, inRenew] = [standsIn(LOCKS), standsIn(RENEW)];

/** The rest of the locks script has to do without its contended path what that does in its place. */
function mistakesInLocks(): Mistake[] {
  const contended = new Set(contendedPathOf(LOCKS));
  const rest = withoutContendedPath(LOCKS);
  return [
    ...mistakesIn('CONTENDED', LOCKS, (line) => contended.has(line)),
    ...mistakesIn('LOCKS', rest, (line, within) => !isForCluster(line, within)),
  ].map((mistake) => ({ ...mistake, script: LOCKS }));
}

const mistakes = (): Mistake[] => [
  ...mistakesInLocks(),
  ...mistakesIn('CLUSTER_LOCKS', CLUSTER_LOCKS, (line, within) => isForCluster(line, within) || !inLocks(line)),
  ...mistakesIn('RENEW_IN_CLUSTER', RENEW_IN_CLUSTER, (line) => !inRenew(line)),
  ...Object.entries({ RENEW, INSPECT, HOLDERS_OF, PUBLISH }).flatMap(([what, script]) => mistakesIn(what, script)),
];

const PROGRAMS = 300;
/** The same programs for each mistake, and in each run. */
const SEED = 1;
const EVERY = LONG || ONLY ? 1 : 40;

/**
 * A script that never ends, or a process that is never notified, counts as noticed too: one that takes this long, and
 * this many times as long as the scripts without a mistake.
 */
const [PATIENCE_MS, PATIENCE_TIMES] = [30_000, 5];

/** What the scripts without a mistake may take on a busy machine. */
const UNCHANGED_MS = 240_000;

/** Mistakes that make no difference but for the time something takes, or for a ms. */
const HARMLESS: readonly RegExp[] = [
  // The fast path does nothing that the rest of the script would not do.
  /local isLone = .*=> {2}(gone|local isLone = #ARGV ~=|.*(or #KEYS == firstKey \+ 1|#KEYS == firstKey)$)/,
  /local hasNoQueue = .*=> {2}(gone|.*~= 0$)/,
  /if hasNoQueue then {2}=> {2}if false/,
  /local operationCount = .*=> {2}local operationCount = \(#ARGV - nextArg\)/,
  /if not advanceTo and operationCount > 1 and .*=> {2}(if false|if advanceTo|.*>= 1 and|.*#KEYS ~=|.*#KEYS == firstKey \+)/,
  /if call\('EXISTS', unpack\(queues\)\) == 0 then {2}=> {2}(if false|.*~= 0 then)/,
  /if operation == 'queue' or operation == 'handoff' .*=> {2}(if false|if operation == 'queue' and)/,
  /if not set or set\.err then break end {2}=> {2}if true/,
  /if set and not set\.err then {2}=> {2}if false/,
  /if last - count > 0 then return .*=> {2}if false/,
  /elseif operation == 'release' and tryCall\('GET', (KEYS\[firstKey\]|key)\) == token then {2}=> {2}elseif false/,
  /: return call\('DEL', key\) {2}=> {2}gone/,
  /if nextArg > #ARGV (and operationCount > 2 )?then return .*=> {2}(gone|if false|if nextArg >= #ARGV)/,
  /if #operation > \d+ then {2}=> /,
  /operation = string\.match\(operation, '\^\(%a\+\) 1 exclusive\/'\) or operation {2}=> /,
  // Nor does the contended path.
  /CONTENDED .*if not advanceTo and isLone then {2}=> {2}if (false|advanceTo)/,
  /CONTENDED .*=> {2}(else)?if false then$/,
  /CONTENDED .*: if #what > \d+ then operation, kind = .*=> /,
  /CONTENDED .*: (waiting, waiterLease, label|channel|fenceCount|waiter, fenceCount) = .*=> {2}gone/,
  /CONTENDED .*: local isPlain = .*\(label (~= '' or|== '' and) /,
  /CONTENDED .*: local last = fenceCount and .*=> {2}local last = fenceCount or /,
  /CONTENDED .*local notifies = .*=> .* or hasNoQueue$/,
  // What is as long as it may be is cut off to that, and the shorter of two equal leases is either.
  /CONTENDED .*: if #holder > \d+ then .*=> {2}if (true|#holder >= )/,
  /CONTENDED .*: call\('SET', key, waiting, 'PX', .* <= 0 and /,
  // A queue that is empty is gone.
  /CONTENDED .*: if waiters\[3\] then {2}=> {2}if true/,
  /CONTENDED .*: if \(operation == 'queue' or .*=> {2}if \(operation == 'queue' and /,
  // In a cluster it is never known who hears.
  /CLUSTER_LOCKS .*: if added == 0 or deliveryIsUnknown .*=> {2}if (true|added ~= 0 or)/,
  // Reads one waiter more at a time.
  /'ZRANGE', queue, position, position \+ page - 1, .*position \+ page, /,
  // Nothing is as good as false.
  /: return false {2}=> {2}gone/,
  // Reads the clock in vain.
  /if isClock or not last or .*=> {2}(if true|.*<= tonumber\(least\) then$)/,
  // What is equal is written once more.
  /local isBehind = .*<= tonumber\(least\)/,
  /call\('PTTL', (KEYS\[i\]|key|name)\) < tonumber\(lease\) .*<= tonumber\(lease\)/,
  /tonumber\((ends|call\('ZSCORE', holdersOf\(i\), token\))\) < now \+ lease .*<= now \+ lease/,
  // Looks at a queue in vain, or gives a free key to its first waiter, as every caller does that asks for it.
  /if wasQueued and released == 0 then .*=> {2}if (true|wasQueued or released == 0)/,
  /if \(sharing or not value\) and call\('EXISTS', KEYS\[i \+ 1\]\) == 1 then .*=> {2}(if true|if \(sharing or not value\) or)/,
  // Reads all of the notes before, in place of the last of them.
  /: local number = before and string\.match\(.*math\.min\(1, before - 20\)/,
  // A ms more or less.
  /if not token or aliveUntil < now or .*=> {2}if not token or aliveUntil <= now/,
  /if tonumber\(alive\[2\] or 0\) < now and .*=> {2}.* <= now/,
  /if tonumber\(found\[i \+ 1\]\) > now then {2}=> {2}if tonumber\(found\[i \+ 1\]\) >= now/,
  /if since and now - since < \d+ then return end {2}=> {2}if since and now - since <= /,
  /return since and now - since >= \d+ and .*=> {2}return .* and aliveUntil - \d+ <= /,
  // Removes what exists in a cluster only.
  /if deliveryIsUnknown then call\('ZREM', aliveOf\(i\), '\?'\) end {2}=> {2}if true/,
  // From Redis 7 on an error is caught as a text; before that, as a table.
  / failure = type\(held\) == 'table' .*=> {2}failure = type\(held\) (~=|== 'table' or)/,
  /local failure = \{err = type\(reply\) == 'table' .*=> {2}local failure = \{err = type\(reply\) (~=|== 'table' or)/,
  // Asks for the time once more.
  /if not now then {2}=> {2}if true/,
];

let server: RedisServer;

beforeAll(async () => {
  server = await startRedis();
});

afterAll(() => server.stop());

async function aCaseFails(): Promise<boolean> {
  const redis = new Redis(server.url, { retryStrategy: null }).on('error', () => undefined);
  try {
    for (const holds of Object.values(SCRIPT_CASES)) {
      await redis.flushall();
      const bench = scriptBench(redis);
      await holds(bench).finally(() => bench.close());
    }
    return false;
  } catch {
    return true;
  } finally {
    redis.disconnect();
  }
}

async function aProgramFails(): Promise<boolean> {
  const world = new RedisWorld(server);
  try {
    await world.open();
    return (await fc.check(answersAsModel(world), { numRuns: PROGRAMS, seed: SEED, endOnFailure: true })).failed;
  } catch {
    return true;
  } finally {
    await world.close().catch(() => undefined);
  }
}

/** Whether a test fails with the scripts as they are now. The random programs don't run in a cluster. */
async function isNoticed(inPrograms: boolean, patienceMs: number): Promise<boolean> {
  const patience = new AbortController();
  const found = aCaseFails().then((failed) => failed || (inPrograms && aProgramFails()));
  const answer = await Promise.race([found, sleep(patienceMs, true, { signal: patience.signal })]);
  patience.abort();
  await server.restart();
  await found;
  return answer;
}

async function isNoticedOf({ script, source }: Mistake, patienceMs: number): Promise<boolean> {
  const { bySha1, bySource, source: before } = script;
  Object.assign(script, new LuaScript({ source, decode: script.decode }));
  try {
    return await isNoticed(script !== CLUSTER_LOCKS && script !== RENEW_IN_CLUSTER, patienceMs);
  } finally {
    Object.assign(script, { bySha1, bySource, source: before });
  }
}

it(
  'a mistake in a script is noticed by a test, wherever it is',
  async () => {
    const found = mistakes();
    expect(HARMLESS.filter((harmless) => !found.some(({ name }) => harmless.test(name)))).toEqual([]);
    const harmful = found.filter(({ name }) => !HARMLESS.some((harmless) => harmless.test(name)));
    const tried = harmful.filter(({ name }, index) => index % EVERY === 0 && (!ONLY || name.includes(ONLY)));
    const startedAt = performance.now();
    expect(await isNoticed(true, UNCHANGED_MS)).toBe(false);
    const patienceMs = Math.max(PATIENCE_MS, PATIENCE_TIMES * (performance.now() - startedAt));
    const unnoticed: string[] = [];
    for (const mistake of tried) {
      if (await isNoticedOf(mistake, patienceMs)) continue;
      unnoticed.push(mistake.name);
      if (LONG) process.stderr.write(`unnoticed: ${mistake.name}\n`);
    }
    figures('Mistakes made in the Lua scripts, one at a time', 'each is noticed by a test', {
      mistakes: tried.length,
      unnoticed: unnoticed.length,
      'harmless, not tried': found.length - harmful.length,
    });
    expect(unnoticed).toEqual([]);
  },
  LONG ? 3_600_000 : 300_000,
);
