import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const LUA_FOLDER = fileURLToPath(new URL('../../lib/redis/lua/', import.meta.url));

const INCLUDE = /^-- @include (\S+)$/;
const PARAMETER = /^-- @param ([A-Z_]+) /;

/** Words in capitals that are no constants of ours. */
const OF_REDIS = ['KEYS', 'ARGV'];

/** A comment, a string, or a word in capitals. */
const TOKEN = /--.*|'[^']*'|"[^"]*"|\b[A-Z][A-Z\d_]*\b/g;

/** What would have to be escaped, or needs more than one line to be read. */
const UNSUPPORTED = /\[\[|[`\\]|\$\{/;

/** Reads the scripts of a folder, each with the files it includes in place of `-- @include <path>`. */
export function scriptsIn(folder) {
  const names = readdirSync(folder).filter((name) => name.endsWith('.lua'));
  return names.sort().map((name) => {
    const lines = linesOf(folder, name);
    const parameters = lines.flatMap(({ text }) => PARAMETER.exec(text)?.[1] ?? []);
    return { name: name.slice(0, -'.lua'.length), parameters, lines };
  });
}

function linesOf(folder, path) {
  const texts = readFileSync(join(folder, path), 'utf8').trimEnd().split('\n');
  return texts.flatMap((text, index) => {
    const included = INCLUDE.exec(text)?.[1];
    return included ? linesOf(folder, included) : [{ path, number: index + 1, text }];
  });
}

/** The names that constants.ts of a folder exports. */
export function constantsIn(folder) {
  const text = readFileSync(join(folder, 'constants.ts'), 'utf8');
  const exported = text.matchAll(/^export (?:const (\w+)|\{([^}]*)\})/gm);
  return [...exported].flatMap(([, one, several]) => (one ? [one] : several.match(/\w+/g)));
}

/** Removes the comment of a line, and puts something in the place of each constant. */
export function compact(text, replace) {
  if (UNSUPPORTED.test(text)) throw new Error(`No long strings, escapes or backticks, please: ${text}`);
  const code = text.replace(TOKEN, (token) => {
    if (token.startsWith('--')) return '';
    return /^[A-Z]/.test(token) && !OF_REDIS.includes(token) ? replace(token) : token;
  });
  return code.trimEnd();
}
