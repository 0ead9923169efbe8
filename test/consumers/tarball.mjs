import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Packs the built library into a folder, and answers the path of the tarball; it holds what users need, and nothing else. */
export function pack(folder) {
  const [packed] = JSON.parse(execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], { encoding: 'utf8' }));
  const files = packed.files.map(({ path }) => path).sort();
  assert.deepEqual(files, filesForUsers().sort(), 'the tarball does not hold what users need and nothing else');
  console.log(`${packed.filename}: ${files.length} files, ${Math.round(packed.size / 1024)} kB packed.`);
  return join(folder, packed.filename);
}

/** Of each source its code and its types; and what the README refers to. */
function filesForUsers() {
  const built = filesBelow('lib', '.ts').flatMap((file) => ['.js', '.d.ts'].map((ending) => `dist/${file.replace(/\.ts$/, ending)}`));
  const pages = filesBelow('docs', '.md').filter((file) => !file.startsWith('decisions/'));
  return [...built, ...pages.map((file) => `docs/${file}`), 'package.json', 'README.md', 'CHANGELOG.md', 'LICENSE'];
}

function filesBelow(folder, ending) {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith(ending));
  return files.map((file) => file.replaceAll('\\', '/'));
}
