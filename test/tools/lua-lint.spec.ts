import { describe, expect, it } from '@jest/globals';
import { findingsIn } from '../../tools/lua/findings.mjs';

const found = (source: string) => findingsIn(source, ['LEASE_MS']).map(({ line, text }) => `${line}: ${text}`);

describe('The linter of the Lua scripts finds', () => {
  it('the linter of the Lua scripts finds nothing in a script that is right', () => {
    expect(
      found(`
        local call, _, last = redis.call, 1
        local function greet(name, ...)
          local text = {name = name, LEASE_MS, ...}
          last = last or text.other
          return call('ECHO', text[last]), text:len()
        end
        for i = 1, #KEYS do greet(KEYS[i]) end
        for _, value in ipairs(ARGV) do
          repeat local done = call('GET', value) until done
        end`),
    ).toEqual([]);
  });

  it.each([
    ['a global that is not defined', `return math.max(leaes, 1)`, '1: "leaes" is not defined'],
    ['a constant that is not defined', `return LEASE`, '1: "LEASE" is not defined'],
    ['a local that is used before it is declared', `local f = g()\nlocal g = 1\nreturn f, g`, '1: "g" is not defined'],
    [
      'a local that is used outside of its block',
      `if KEYS[1] then\n  local x = 1\n  type(x)\nend\nreturn x`,
      '5: "x" is not defined',
    ],
    ['a global that is assigned', `count = 1`, '1: "count" is assigned, but not a local'],
    ['a global function', `function take() end`, '1: "take" is assigned, but not a local'],
    ['a local that is never read', `\nlocal unused = 1\nunused = 2`, '2: "unused" is never read'],
    ['a local function that is never called', `local function unused() end`, '1: "unused" is never read'],
    ['a parameter that is never read', `return function(used, unused) return used end`, '1: "unused" is never read'],
    ['a loop variable that is never read', `for i = 1, 2 do end`, '1: "i" is never read'],
    ['a local that hides another', `local a = 1\nreturn a, function(a) return a end`, '2: "a" hides another local'],
    ['text that is no Lua', `local function\n`, `2: [2:0] <name> expected near '<eof>'`],
  ])('the linter of the Lua scripts finds %s', (_what, source, finding) => {
    expect(found(source)).toEqual([finding]);
  });
});
