import type { LuaScript } from '../../lib/redis/lua-script.js';

/** A script with one thing wrong. */
export interface Mistake {
  readonly script: LuaScript<unknown>;
  readonly name: string;
  readonly source: string;
}

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

/** All mistakes of these kinds, and each line left out; but for the lines that another script has, too. */
export function mistakesIn(script: LuaScript<unknown>, but?: LuaScript<unknown>): Mistake[] {
  const lines = script.source.split('\n');
  const known = new Set(but?.source.split('\n'));
  return lines.flatMap((line, index) => {
    if (known.has(line) || /^\s*(--|end$|else$|$)/.test(line)) return [];
    const opens = /(\bthen|\bdo|\brepeat)$/.test(line) || /^local function/.test(line);
    const others = SLIPS.map(([found, instead]) => line.replace(found, instead)).filter((other) => other !== line);
    return [...(opens ? [] : ['']), ...new Set(others)].map((other) => ({
      script,
      name: `${index + 1}: ${line.trim()}  =>  ${other.trim() || 'gone'}`,
      source: lines.with(index, other).join('\n'),
    }));
  });
}
