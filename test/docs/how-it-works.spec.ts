import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';

const PAGE = 'docs/how-it-works.md';

const inDocs = readdirSync('docs', { recursive: true, encoding: 'utf8' }).map((file) => join('docs', file));

/** The pages for people who change the library. The guides speak of files in the reader's own app. */
const PAGES = ['README.md', 'CONTRIBUTING.md', ...inDocs].filter(
  (file) => file.endsWith('.md') && !file.startsWith(join('docs', 'guides')),
);

/** The most files that a reader opens to follow a call from `@WithLock` to the script. */
const LONGEST_LADDER = 12;

/** One step of a list: a file, and the names in it to look for. */
interface Step {
  readonly file: string;
  readonly names: readonly string[];
}

/** Reads the numbered steps below a heading: "1. `lib/file.ts`, `name`, `other`: what happens there". */
function stepsBelow(heading: string, page: string): Step[] {
  const section = page.split(`## ${heading}\n`)[1]?.split(/^## /m)[0] ?? '';
  const lines = [...section.matchAll(/^\d+\. ((?:`[^`]+`(?:, )?)+):/gm)];
  return lines.map(([, spans]) => {
    const [file, ...names] = [...spans!.matchAll(/`([^`]+)`/g)].map(([, text]) => text!);
    return { file: file!, names };
  });
}

/** Finds the files and folders that a page names and that do not exist. */
function missingFiles(page: string): string[] {
  const files = [...page.matchAll(/`((?:lib|test|tools|sample-app)\/[^`\s*]+)`/g)].map(([, file]) => file!);
  return [...new Set(files)].filter((file) => !existsSync(file)).map((file) => `no such file: ${file}`);
}

/** Finds the files that do not exist, and the names that a step does not find in its file. */
function mistakesIn(page: string): string[] {
  const headings = [...page.matchAll(/^## (.*)$/gm)].map(([, heading]) => heading!);
  const unknown = headings.flatMap((heading) => stepsBelow(heading, page)).flatMap(namesNotIn);
  return [...missingFiles(page), ...unknown];
}

function namesNotIn({ file, names }: Step): string[] {
  if (!existsSync(file)) return [];
  const source = readFileSync(file, 'utf8');
  return names
    .filter((name) => !new RegExp(`(?<![\\w$])${name.replace(/[#$]/g, '\\$&')}(?![\\w$])`).test(source))
    .map((name) => `no ${name} in ${file}`);
}

it('docs/how-it-works.md names only files that exist, and names that are in them', () => {
  const page = readFileSync(PAGE, 'utf8');
  expect(page).toContain('```mermaid\n');
  expect(mistakesIn(page)).toEqual([]);
});

it.each(PAGES)('%s names only files that exist', (page) => {
  expect(missingFiles(readFileSync(page, 'utf8'))).toEqual([]);
});

it('docs/how-it-works.md follows a call from @WithLock to the script in at most 12 files', () => {
  const files = stepsBelow('A call, from `@WithLock` to the script', readFileSync(PAGE, 'utf8')).map(
    ({ file }) => file,
  );
  expect(files[0]).toBe('lib/decorators/with-lock.decorator.ts');
  expect(files.at(-1)).toMatch(/^lib\/redis\/lua\/.*\.lua$/);
  expect(new Set(files).size).toBeLessThanOrEqual(LONGEST_LADDER);
});

it.each(['A wait', 'A wake-up', 'A loss', 'A renewal'])(
  'docs/how-it-works.md follows %s through the code',
  (heading) => {
    expect(stepsBelow(heading, readFileSync(PAGE, 'utf8')).length).toBeGreaterThan(2);
  },
);

it('the check of docs/how-it-works.md finds a missing file, and a name that is not in its file', () => {
  const page =
    '## A\n\n1. `lib/index.ts`, `LockService`, `NoSuchName`: one.\n2. `lib/none.ts`, `x`: two. See `lib/nowhere`.\n';
  expect(mistakesIn(page)).toEqual([
    'no such file: lib/none.ts',
    'no such file: lib/nowhere',
    'no NoSuchName in lib/index.ts',
  ]);
});
