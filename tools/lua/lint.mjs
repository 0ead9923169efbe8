/** Looks for mistakes in the scripts of lib/redis/lua, each with all that it includes, as they share their locals. */
import { exit } from 'node:process';
import { constantsIn, LUA_FOLDER, scriptsIn } from './assemble.mjs';
import { findingsIn } from './findings.mjs';

const LONGEST_LINE = 120;

const constants = constantsIn(LUA_FOLDER);
const found = new Set(
  scriptsIn(LUA_FOLDER).flatMap(({ parameters, lines }) => {
    const place = ({ path, number }) => `lib/redis/lua/${path}:${number}`;
    const script = lines.map(({ text }) => text).join('\n');
    return [
      ...findingsIn(script, [...constants, ...parameters]).map(
        ({ line, text }) => `${place(lines[line - 1])}: ${text}`,
      ),
      ...lines
        .filter(({ text }) => text.length > LONGEST_LINE)
        .map((line) => `${place(line)}: longer than ${LONGEST_LINE}`),
    ];
  }),
);
for (const finding of found) console.error(finding);
if (found.size > 0) exit(1);
