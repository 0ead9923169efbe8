import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

/** Loads a package of this folder. By `require`: the ESM build of one of them can't be imported by Node. */
export const rival = createRequire(import.meta.url);

export function versionOf(name) {
  const { version } = JSON.parse(readFileSync(new URL(`./node_modules/${name}/package.json`, import.meta.url)));
  return version.replace(/^v/, '');
}
