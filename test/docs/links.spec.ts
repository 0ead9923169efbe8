import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from '@jest/globals';

const inDocs = readdirSync('docs', { recursive: true, encoding: 'utf8' }).map((file) => join('docs', file));
const DOCUMENTS = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...inDocs].filter((file) => file.endsWith('.md'));

/** Finds the links of a page that lead nowhere: no such file, or no such heading in it. */
function deadLinks(page: string, text: string): string[] {
  const links = [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link]) => link!)
    .filter((link) => !/^[a-z]+:/.test(link));
  return links.filter((link) => {
    const [path, anchor] = link.split('#');
    const target = path ? join(dirname(page), path) : page;
    return !existsSync(target) || (anchor !== undefined && !anchors(readFileSync(target, 'utf8')).includes(anchor));
  });
}

const withoutBlocks = (text: string) => text.replace(/^```[\s\S]*?^```/gm, '');

/** Removes code, which may look like a link: `super['run'](id)`. */
const withoutCode = (text: string) => withoutBlocks(text).replace(/`[^`\n]*`/g, '');

function anchors(text: string): string[] {
  const headings = withoutBlocks(text).matchAll(/^#+ (.*)$/gm);
  return [...headings].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

it.each(DOCUMENTS)('all links of %s lead somewhere', (page) => {
  expect(deadLinks(page, readFileSync(page, 'utf8'))).toEqual([]);
});

it('package.json names one repository, with its page and its issues', () => {
  const { repository, homepage, bugs } = JSON.parse(readFileSync('package.json', 'utf8')) as Record<
    'repository' | 'bugs',
    { url: string }
  > & { homepage: string };
  const page = /^git\+(https:\/\/github\.com\/[\w-]+\/nest-redis-lock)\.git$/.exec(repository.url)?.[1];
  expect([homepage, bugs.url]).toEqual([`${page}#readme`, `${page}/issues`]);
});

it('every page of docs/ can be reached from the README', () => {
  const linked = [...readFileSync('README.md', 'utf8').matchAll(/\]\((docs\/[^)#]+)/g)].map(([, path]) => path!);
  const pages = DOCUMENTS.filter(
    (page) => page.startsWith('docs') && !linked.some((path) => page === path || page.startsWith(`${path}/`)),
  );
  expect(pages).toEqual([]);
});

it('the check of the links finds a dead one', () => {
  expect(
    deadLinks(
      'README.md',
      '[a](docs/none.md) [b](docs/redis.md#none) [c](docs/redis.md#in-a-redis-cluster) ' +
        '[d](https://nowhere.example) [`e`](f.md) `a[0](g)`',
    ),
  ).toEqual(['docs/none.md', 'docs/redis.md#none', 'f.md']);
});
