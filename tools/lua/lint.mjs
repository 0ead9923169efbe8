/** Looks for mistakes in the scripts of lib/redis/lua, each with all that it includes, as they share their locals. */
import { exit } from 'node:process';
import { constantsIn, LUA_FOLDER, scriptsIn } from './assemble.mjs';
import { findingsIn } from './findings.mjs';

const constants = constantsIn(LUA_FOLDER);
const found = new Set(
  scriptsIn(LUA_FOLDER).flatMap(({ parameters, lines }) =>
    findingsIn(lines.map(({ text }) => text).join('\n'), [...constants, ...parameters]).map(({ line, text }) => {
      const { path, number } = lines[line - 1];
      return `lib/redis/lua/${path}:${number}: ${text}`;
    }),
  ),
);
for (const finding of found) console.error(finding);
if (found.size > 0) exit(1);
