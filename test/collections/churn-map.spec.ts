import { describe, expect, it } from '@jest/globals';
import { ChurnMap } from '../../lib/collections/churn-map.js';
import { oldGenerationGrowthMb } from '../support/old-generation.js';

/** Goes on until the map has moved its entries several times. */
function churn(map: ChurnMap<string, number>, times = 1000): void {
  for (let i = 0; i < times; i++) {
    map.set(`passing ${i}`, i);
    map.delete(`passing ${i}`);
  }
}

describe('ChurnMap', () => {
  it('what has been deleted does not stay in memory until the next full garbage collection, as it does with a Map', () => {
    const map = new ChurnMap<number, unknown>().set(-1, 'stays');
    const growthMb = oldGenerationGrowthMb(30_000, (time) => {
      map.set(time, new Array(125).fill(time));
      map.delete(time - 16);
    });
    expect(growthMb).toBeLessThan(4); // of 30 MB; 17 with a Map
  });

  it('keeps what is not deleted, in the order in which it came', () => {
    const map = new ChurnMap<string, number>();
    map.set('a', 1);
    churn(map);
    map.set('b', 2);
    churn(map);
    map.set('a', 3);
    expect([...map]).toEqual([
      ['a', 3],
      ['b', 2],
    ]);
    expect([[...map.keys()], [...map.values()]]).toEqual([
      ['a', 'b'],
      [3, 2],
    ]);
    expect([map.size, map.has('b'), map.get('b'), map.has('c'), map.get('c')]).toEqual([2, true, 2, false, undefined]);
    expect([map.delete('b'), map.delete('b'), map.size]).toEqual([true, false, 1]);
    map.clear();
    expect([map.size, [...map]]).toEqual([0, []]);
  });

  it('who iterates is not shown what is deleted meanwhile, however much comes and goes between', () => {
    const map = new ChurnMap<string, number>();
    for (const key of ['a', 'b', 'c', 'd']) map.set(key, 0);
    const shown: string[] = [];
    for (const key of map.keys()) {
      shown.push(key);
      map.delete(key);
      if (key === 'a') churn(map);
      if (key === 'b') map.delete('c');
    }
    expect([shown, map.size]).toEqual([['a', 'b', 'd'], 0]);
  });
});
