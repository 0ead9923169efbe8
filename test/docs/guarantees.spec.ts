import { existsSync, readFileSync } from 'node:fs';
import { expect, it } from '@jest/globals';
import { SLOW_TIER } from '../slow-tier.mjs';

const isSlow = (spec: string) => SLOW_TIER.some((pattern) => new RegExp(pattern).test(spec));

/** Finds the mistakes in the tables of a page that names specs: guarantee, quick tier, slow tier. */
function mistakesIn(page: string): string[] {
  const rows = [...page.matchAll(/^\|([^|\n]*)\|([^|\n]*)\|([^|\n]*)\|$/gm)].filter(([row]) => /`\w+\//.test(row));
  return rows.flatMap(([, guarantee = '', quick = '', slow = '']) => {
    const [quickSpecs, slowSpecs] = [specsIn(quick), specsIn(slow)];
    return [
      ...(quickSpecs.length === 0 ? [`no quick spec: ${guarantee.trim()}`] : []),
      ...[...quickSpecs, ...slowSpecs].filter((spec) => !existsSync(spec)).map((spec) => `not there: ${spec}`),
      ...quickSpecs.filter((spec) => isSlow(spec)).map((spec) => `not quick: ${spec}`),
      ...slowSpecs.filter((spec) => !isSlow(spec)).map((spec) => `not slow: ${spec}`),
    ];
  });
}

function specsIn(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => `test/${name}.spec.ts`);
}

it('test/README.md names only existing specs, in their tier, and a quick one for each guarantee', () => {
  const page = readFileSync('test/README.md', 'utf8');
  expect(page).toContain('`processes/lost-update`');
  expect(mistakesIn(page)).toEqual([]);
});

it('the check of test/README.md finds a missing spec, a wrong tier, and a missing quick spec', () => {
  const page = '| one | `redis/none` | `redis/connection-loss` |\n| two | | `lab/soak` |\n| three | `lab/soak` | |\n';
  expect(mistakesIn(page)).toEqual([
    'not there: test/redis/none.spec.ts',
    'not slow: test/redis/connection-loss.spec.ts',
    'no quick spec: two',
    'not quick: test/lab/soak.spec.ts',
  ]);
});
