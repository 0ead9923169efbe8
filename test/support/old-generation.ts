import { getHeapSpaceStatistics } from 'node:v8';
import { collectGarbage } from './collect-garbage.js';

/** How much the old generation of the heap grows, at most, while something is done again and again, in MB. */
export function oldGenerationGrowthMb(times: number, work: (time: number) => void): number {
  // What is there now gets old.
  collectGarbage();
  const before = oldGenerationMb();
  let most = 0;
  for (let time = 0; time < times; time++) {
    work(time);
    if (time % 1000 === 0) most = Math.max(most, oldGenerationMb());
  }
  return most - before;
}

function oldGenerationMb(): number {
  const space = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space')!;
  return space.space_used_size / 1024 ** 2;
}
