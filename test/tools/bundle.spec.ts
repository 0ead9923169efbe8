import { readdirSync, readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { type Comment, parse } from 'acorn';

const DIST = 'dist';

/** The files that Node loads: the page has files of its own. */
const bundles = readdirSync(DIST, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.js') && !file.startsWith(join('page', 'assets')))
  .map((file) => ({ file, code: readFileSync(join(DIST, file), 'utf8') }));

/** Where a line of a bundle declares a class or a function: `class Lock extends …`. */
const DECLARATION = /^(?:export )?(?:async )?(?:class|function) (\w+)/;

function codeOf(file: string): string {
  return bundles.find((bundle) => bundle.file === file)!.code;
}

function mapOf(file: string): SourceMap['payload'] {
  return JSON.parse(readFileSync(join(DIST, `${file}.map`), 'utf8')) as SourceMap['payload'];
}

it('the bundle has the entry points and what they share', () => {
  expect(bundles.map(({ file }) => file)).toEqual(
    expect.arrayContaining(['index.js', 'nest.js', 'nest-redis-lock.js', join('testing', 'index.js')]),
  );
});

it('an app on one Redis does not read the code of other stores, of metrics, or of tests', () => {
  const files = ['index.js', 'nest.js', 'nest-redis-lock.js'];
  const imported = files.flatMap((file) => [...codeOf(file).matchAll(/^(?:import|export) .*'\.\/(.*)';$/gm)]);
  expect(imported.map(([, file]) => file).filter((file) => !files.includes(file!))).toEqual([]);
  const sources = files.flatMap((file) => mapOf(file).sources);
  const rooms = ['redis/cluster', 'redis/durability', 'store/quorum', 'store/memory', 'metrics', 'testing'];
  expect(sources).toContain('../lib/redis/locks/redis-lock.store.ts');
  expect(sources.filter((source) => rooms.some((room) => source.startsWith(`../lib/${room}/`)))).toEqual([]);
});

it.each(bundles)('$file has no comments, which every start of an app would read', ({ code }) => {
  const comments: Comment[] = [];
  parse(code, { ecmaVersion: 'latest', sourceType: 'module', onComment: comments });
  const kept = /^(?:# sourceMappingURL=|#__PURE__$|\/usr\/bin\/env node$)/;
  expect(comments.map(({ value }) => value).filter((text) => !kept.test(text))).toEqual([]);
});

it.each(bundles)('the source map of $file leads to the TypeScript of each class and function', ({ file, code }) => {
  const payload = mapOf(file);
  const map = new SourceMap(payload);
  code.split('\n').forEach((line, at) => {
    const name = DECLARATION.exec(line)?.[1]?.replace(/\$\d+$/, '');
    if (!name) return;
    const entry = map.findEntry(at, line.indexOf(name));
    if (!('originalSource' in entry)) throw new Error(`${file}:${at + 1} is in no source`);
    const source = payload.sourcesContent[payload.sources.indexOf(entry.originalSource)];
    expect(source?.split('\n')[entry.originalLine]).toContain(name);
  });
});
