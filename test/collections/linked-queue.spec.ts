import { describe, expect, it } from '@jest/globals';
import { LinkedQueue } from '../../lib/collections/linked-queue.js';
import { oldGenerationGrowthMb } from '../support/old-generation.js';

describe('LinkedQueue', () => {
  it('what has left does not stay in memory until the next full garbage collection', () => {
    const queue = new LinkedQueue<unknown>();
    const nodes = [queue.add('first')];
    const growthMb = oldGenerationGrowthMb(30_000, (time) => {
      nodes.push(queue.add(new Array(125).fill(time)));
      if (nodes.length > 16) queue.remove(nodes.shift()!);
    });
    expect(growthMb).toBeLessThan(4);
  });

  it('any item may leave, and the others keep their order', () => {
    const queue = new LinkedQueue<string>();
    const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((item) => queue.add(item));
    queue.remove(b!);
    expect([queue.all(), queue.first, queue.size]).toEqual([['a', 'c', 'd'], 'a', 3]);
    queue.remove(d!);
    queue.remove(a!);
    queue.add('e');
    expect([queue.all(), queue.first, queue.size]).toEqual([['c', 'e'], 'c', 2]);
    queue.remove(c!);
    expect([queue.all(), queue.first, queue.size]).toEqual([['e'], 'e', 1]);
  });
});
