import { expect, it } from '@jest/globals';
import { sorted } from '../../lib-page/parts/sort.js';

it('rows are sorted by number or text; those of unknown value come last, either way', () => {
  expect(sorted([3, null, 20, 1], (value) => value, false)).toEqual([1, 3, 20, null]);
  expect(sorted([3, null, 20, 1], (value) => value, true)).toEqual([20, 3, 1, null]);
  expect(sorted(['b', 'a', null], (value) => value, true)).toEqual(['b', 'a', null]);
});

it('rows of the same value keep their order', () => {
  const rows = [1, 2, 3].map((id) => ({ id, held: 5 }));
  expect(sorted(rows, ({ held }) => held, true).map(({ id }) => id)).toEqual([1, 2, 3]);
});
