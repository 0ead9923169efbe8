import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const LUA_FOLDER = fileURLToPath(new URL('../../lib/redis/lua/', import.meta.url));

const INCLUDE = /^-- @include (\S+)$/;
const PARAMETER = /^--- @param ([A-Z_]+)$/;
const DOCUMENTATION = /^---/;

/** Names of the Redis API, and constants of the scripts: words in capitals. */
const OF_REDIS = ['KEYS', 'ARGV'];

/** A comment, a text, or a word in capitals: only the word is code that may be a constant. */
const TOKEN = /--.*|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|\b[A-Z][A-Z\d_]*\b/g;

/**
 * Reads the scripts of a folder, each with the files it includes in place of `-- @include <path>`.
 * Lines that begin with `---` stay behind: they document a file.
 */
export function scriptsIn(folder) {
  const names = readdirSync(folder).filter((name) => name.endsWith('.lua'));
  return names.sort().map((name) => {
    const lines = linesOf(folder, name);
    const parameters = lines.flatMap(({ text }) => PARAMETER.exec(text)?.[1] ?? []);
    return {
      name: name.slice(0, -'.lua'.length),
      parameters,
      lines: lines.filter(({ text }) => !DOCUMENTATION.test(text)),
    };
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

/** Puts something in the place of each constant of a line. */
export function replaceConstants(text, replace) {
  return text.replace(TOKEN, (token) => (/^[A-Z]/.test(token) && !OF_REDIS.includes(token) ? replace(token) : token));
}
