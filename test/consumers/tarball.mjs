import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';

/**
 * Packs the built library into a folder, and answers the path of the tarball; it holds what users need, and nothing
 * else.
 */
export function pack(folder) {
  const [packed] = JSON.parse(
    execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], { encoding: 'utf8' }),
  );
  const files = packed.files.map(({ path }) => path).sort();
  assert.deepEqual(files, filesForUsers().sort(), 'the tarball does not hold what users need and nothing else');
  assert.deepEqual(deadLinks(files), [], 'a page of the tarball links to what is not in it');
  assertSmall(files.filter((file) => file.startsWith(ASSETS)));
  console.log(`${packed.filename}: ${files.length} files, ${Math.round(packed.size / 1024)} kB packed.`);
  return join(folder, packed.filename);
}

/** What the lock page loads: it has to be quick on a phone, too. */
const ASSETS = 'dist/page/assets/';
const MOST_BYTES = 100_000;

function assertSmall(assets) {
  const bytes = assets.reduce((sum, file) => sum + gzipSync(readFileSync(file)).length, 0);
  assert.ok(bytes > 0 && bytes < MOST_BYTES, `the assets of the lock page have ${bytes} bytes compressed`);
}

/** The files of the command: its two programs, and all that they load, for each verb. */
function commandFiles() {
  const files = new Set(['index', 'watcher']);
  for (const file of files) {
    const imports = readFileSync(`dist/cli/${file}.js`, 'utf8').matchAll(/['"]\.\/([\w.-]+)\.js['"]/g);
    for (const [, imported] of imports) files.add(imported);
  }
  return [...files];
}

/** The bundle with its source maps, the types of each source, and what the README refers to. */
function filesForUsers() {
  const bundle = [
    'index',
    'nest-redis-lock',
    'nest',
    'redis-store',
    'lock-instruments',
    'sweep',
    ...commandFiles().map((file) => `cli/${file}`),
    'opentelemetry/index',
    'page/index',
    'prometheus/index',
    'terminus/index',
    'testing/index',
  ];
  const built = [
    ...bundle.flatMap((file) => [`dist/${file}.js`, `dist/${file}.js.map`]),
    ...['index.html', 'page.js', 'page.css', 'icon.svg'].map((file) => `${ASSETS}${file}`),
    ...filesBelow('lib', '.ts').map((file) => `dist/${file.replace(/\.ts$/, '.d.ts')}`),
  ];
  const pages = ['.md', '.svg', '.png', '.gif', '.json', '.yml'].flatMap((ending) =>
    filesBelow('docs', ending).map((file) => `docs/${file}`),
  );
  return [...built, ...pages, 'package.json', 'README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'LICENSE'];
}

/** The links of its pages to files that it does not hold. */
function deadLinks(files) {
  const folders = new Set(files.map((file) => dirname(file)));
  return files
    .filter((file) => file.endsWith('.md'))
    .flatMap((page) => {
      // Code can look like a link: super['run'](id).
      const text = readFileSync(page, 'utf8')
        .replace(/^```[\s\S]*?^```/gm, '')
        .replace(/`[^`\n]*`/g, '');
      const links = [...text.matchAll(/\]\(([^)\s#]+)[^)]*\)/g)].map(([, link]) => link);
      const targets = links.filter((link) => !/^[a-z]+:/.test(link)).map((link) => join(dirname(page), link));
      return targets
        .filter((target) => !files.includes(target) && !folders.has(target))
        .map((target) => `${page}: ${target}`);
    });
}

function filesBelow(folder, ending) {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith(ending));
  return files.map((file) => file.replaceAll('\\', '/'));
}
