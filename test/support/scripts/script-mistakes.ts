import type { LuaScript } from '../../../lib/redis/lua/lua-script.js';

/** A script with one thing wrong. */
export interface Mistake {
  readonly script: LuaScript<unknown>;
  readonly name: string;
  readonly source: string;
}

/** What to find in a line, and what to put in its place. */
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

/** Makes all mistakes of these kinds, and leaves out each line; of all lines, or of those that are looked at. */
export function mistakesIn(
  what: string,
  script: LuaScript<unknown>,
  isLooked: (line: string, within: string) => boolean = () => true,
): Mistake[] {
  const lines = script.source.split('\n');
  let within = '';
  return lines.flatMap((line, index) => {
    within = /^local function (\w+)/.exec(line)?.[1] ?? (/^\S/.test(line) && line !== 'end' ? '' : within);
    const code = line.replace(/ -- .*/, '');
    if (!isLooked(line, within) || /^\s*(--|end$|else$|$)/.test(code)) return [];
    const opens = /(\bthen|\bdo|\brepeat)$/.test(code) || /^local function/.test(code);
    const others = SLIPS.map(([found, instead]) => code.replace(found, instead)).filter((other) => other !== code);
    return [...(opens ? [] : ['']), ...new Set(others)].map((other) => ({
      script,
      name: `${what} ${index + 1}: ${code.trim()}  =>  ${other.trim() || 'gone'}`,
      source: lines.with(index, other).join('\n'),
    }));
  });
}
