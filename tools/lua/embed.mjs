/**
 * Writes lib/redis/lua/sources.generated.ts from the .lua files beside it, so that no file is read at run time. A word
 * in capitals in a script is a constant of constants.ts. `--check` writes nothing, and fails when the file is stale.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { argv, exit } from 'node:process';
import { constantsIn, LUA_FOLDER, compact, scriptsIn } from './assemble.mjs';

const GENERATED = `${LUA_FOLDER}sources.generated.ts`;

const constants = constantsIn(LUA_FOLDER);
const used = new Set();

/** Writes a script without its comments and blank lines. */
function embedded({ name, parameters, lines }) {
  const texts = lines.map(({ path, number, text }) =>
    compact(text, (constant) => {
      if (!parameters.includes(constant)) {
        if (!constants.includes(constant)) throw new Error(`${path}:${number}: constants.ts has no ${constant}.`);
        used.add(constant);
      }
      return `\${lua(${constant})}`;
    }),
  );
  const takes = parameters.map((parameter) => `${parameter}: string`).join(', ');
  const type = takes ? ` = (${takes}): string =>` : ': string =';
  const code = texts.filter((text) => text !== '').join('\n');
  const constant = `${name.toUpperCase().replaceAll('-', '_')}_SOURCE`;
  return `/** The code of ${name}.lua. */\nexport const ${constant}${type} \`\n${code}\n\`;\n`;
}

const sources = scriptsIn(LUA_FOLDER).map(embedded).join('\n');
const generated = `/* eslint-disable max-lines */
// Written by "npm run lua" from the .lua files of this folder. Change those.
import {
${[...used, 'lua']
  .sort()
  .map((name) => `  ${name},\n`)
  .join('')}} from './constants.js';

${sources}`;

if (!argv.includes('--check')) {
  writeFileSync(GENERATED, generated);
} else if (readFileSync(GENERATED, 'utf8') !== generated) {
  console.error('lib/redis/lua/sources.generated.ts is stale: run "npm run lua".');
  exit(1);
}
