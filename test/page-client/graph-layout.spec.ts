import { expect, it } from '@jest/globals';
import { layoutOf } from '../../lib-page/parts/graph-layout.js';

const calls = { total: 0, items: [] };
const edge = (from: string, to: string | null, isInCycle = false) => ({ from, key: `${from}-${to}`, to, isInCycle });
const columnsOf = (layout: ReturnType<typeof layoutOf>) => Object.fromEntries(layout.nodes.map(({ id, x }) => [id, x]));

it('each call stands left of the call that it waits for', () => {
  const layout = layoutOf({
    calls,
    cycles: [],
    edges: [edge('c', 'b'), edge('b', 'a'), edge('d', 'a'), edge('a', null)],
  });
  expect(columnsOf(layout)).toEqual({ c: 0, b: 1, d: 1, a: 2 });
  expect(layout).toMatchObject({ columns: 3, rows: 2 });
});

it('no two calls share a place', () => {
  const edges = Array.from({ length: 30 }, (_, index) => edge(`w${index}`, `h${index % 3}`));
  const { nodes } = layoutOf({ calls, cycles: [], edges });
  expect(new Set(nodes.map(({ x, y }) => `${x} ${y}`)).size).toBe(33);
});

it('calls of a circle, and their edges, are marked; those that wait for them are not', () => {
  const edges = [edge('a', 'b', true), edge('b', 'a', true), edge('c', 'a')];
  const layout = layoutOf({ calls, cycles: [['a', 'b']], edges });
  expect(layout.nodes.filter(({ isInCycle }) => isInCycle).map(({ id }) => id)).toEqual(['a', 'b']);
  expect(layout.edges.map(({ isInCycle }) => isInCycle)).toEqual([true, true, false]);
});

it('a call that waits for itself has a place, too', () => {
  expect(columnsOf(layoutOf({ calls, cycles: [['a']], edges: [edge('a', 'a', true)] }))).toEqual({ a: 0 });
});
