import { afterAll, beforeAll, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { LuaScript } from '../../lib/redis/lua-script.js';
import { HOLDERS_OF } from '../../lib/redis/scripts/holders-of.script.js';
import { INSPECT } from '../../lib/redis/scripts/inspect.script.js';
import { LOCKS } from '../../lib/redis/scripts/locks.script.js';
import { RENEW } from '../../lib/redis/scripts/renew.script.js';
import { programs } from '../support/lock-program.js';
import { ProgramRun } from '../support/program-run.js';
import { RedisWorld } from '../support/redis-world.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';

// Breaks the scripts in one place at a time, and looks whether the random programs notice. By hand, about a quarter of an hour:
//
//   npm test -- --forceExit --testMatch '**/test/mutation/*.ts'     and ONLY=ZADD before it, for those that match this
//
// It names the mistakes that nobody noticed. Each is either none, or breaks a promise that the programs do not look at.

const SCRIPTS: readonly LuaScript<unknown>[] = [LOCKS, RENEW, INSPECT, HOLDERS_OF];
const PROGRAMS = 200;
const PATIENCE_MS = 60_000;

/** What is put in the place of what, where it is found. */
const SLIPS: readonly (readonly [RegExp, string])[] = [
  [/ == /, ' ~= '],
  [/ ~= /, ' == '],
  [/ < /, ' <= '],
  [/ < /, ' > '],
  [/ > /, ' >= '],
  [/ and /, ' or '],
  [/ or /, ' and '],
  [/if not /, 'if '],
  [/^(\s*)(else)?if .* then\b/, '$1$2if true then'],
  [/^(\s*)(else)?if .* then\b/, '$1$2if false then'],
  [/math\.max/, 'math.min'],
  [/math\.min/, 'math.max'],
  [/'NX', /, ''],
  [/ \+ 1\b/, ''],
  [/ - 1\b/, ''],
  [/-1, -1/, '0, 0'],
];

interface Mutant {
  readonly script: LuaScript<unknown>;
  readonly name: string;
  readonly source: string;
}

function mutantsOf(script: LuaScript<unknown>): Mutant[] {
  const lines = script.source.split('\n');
  return lines.flatMap((line, index) => {
    if (/^\s*(--|end$|else$|$)/.test(line)) return [];
    const opens = /(\bthen|\bdo|\brepeat)$/.test(line) || /^local function/.test(line);
    const others = SLIPS.map(([found, instead]) => line.replace(found, instead)).filter((other) => other !== line);
    return [...(opens ? [] : ['']), ...new Set(others)].map((other) => ({
      script,
      name: `${index + 1}: ${line.trim()}  =>  ${other.trim() || 'gone'}`,
      source: lines.with(index, other).join('\n'),
    }));
  });
}

let server: RedisServer;

beforeAll(async () => {
  server = await startRedis();
});

afterAll(() => server.stop());

/** Answers whether a program fails with the script as it is now. One that hangs has been noticed, too. */
async function noticed(): Promise<boolean> {
  let timer: NodeJS.Timeout;
  const patience = new Promise<boolean>((resolve) => (timer = setTimeout(() => resolve(true), PATIENCE_MS)));
  const world = new RedisWorld(server);
  const failed = async () => {
    await world.open();
    const property = fc.asyncProperty(programs, (program) => world.begin().then(() => new ProgramRun(world).run(program)));
    return (await fc.check(property, { numRuns: PROGRAMS, endOnFailure: true })).failed;
  };
  const found = await Promise.race([failed().catch(() => true), patience]);
  clearTimeout(timer!);
  await server.restart();
  await world.close().catch(() => undefined);
  return found;
}

it('notices every mistake in a script', async () => {
  const only = new RegExp(process.env['ONLY'] ?? '');
  const mutants = SCRIPTS.flatMap(mutantsOf).filter(({ name }) => only.test(name));
  const unnoticed: string[] = [];
  expect(await noticed()).toBe(false);
  for (const { script, name, source } of mutants) {
    const { bySha1, bySource } = script;
    Object.assign(script, new LuaScript({ source, decode: script.decode }));
    const found = await noticed();
    Object.assign(script, { bySha1, bySource });
    if (found) continue;
    unnoticed.push(name);
    process.stderr.write(`nobody noticed ${name}\n`);
  }
  process.stderr.write(`${mutants.length} mistakes, ${unnoticed.length} unnoticed\n`);
}, 7_200_000);
