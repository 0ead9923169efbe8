import { LuaScript } from '../../../lib/redis/lua/lua-script.js';

const BEGIN = 'if not advanceTo and isLone then';

/** Splits the locks script into the lines before, of and behind its contended path. */
function parts(source: string): readonly (readonly string[])[] {
  const lines = source.split('\n');
  const begin = lines.findIndex((line) => line.startsWith(BEGIN));
  const end = lines.indexOf('end', begin) + 1;
  if (begin < 0) throw new Error(`There is no line that begins with "${BEGIN}".`);
  return [lines.slice(0, begin), lines.slice(begin, end), lines.slice(end)];
}

/** Lists the lines of the contended path. */
export function contendedPathOf({ source }: LuaScript<unknown>): readonly string[] {
  return parts(source)[1]!;
}

/** Returns the locks script without its contended path: the rest does the same, only slower. */
export function withoutContendedPath<Reply>({ source, decode }: LuaScript<Reply>): LuaScript<Reply> {
  const [before, , behind] = parts(source);
  return new LuaScript({ source: [...before!, ...behind!].join('\n'), decode });
}
