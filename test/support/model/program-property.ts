import fc from 'fast-check';
import { programs, type Operation } from './lock-program.js';
import { ProgramRun } from './program-run.js';
import type { ProgramWorld } from './program-world.js';

/** Ends are 1 s away from what a program does at least: one that took nearly as long says nothing. */
const TOO_LONG_MS = 800;

/** Whatever is asked of a store, its answers are those of the model. */
export const answersAsModel = (world: ProgramWorld) => fc.asyncProperty(programs, (program) => run(world, program));

async function run(world: ProgramWorld, program: readonly Operation[]): Promise<void> {
  const startedAt = process.hrtime.bigint();
  await world.begin();
  try {
    await new ProgramRun(world).run(program);
  } catch (error) {
    fc.pre(process.hrtime.bigint() - startedAt < BigInt(TOO_LONG_MS * 1e6));
    throw error;
  } finally {
    await world.end();
  }
}
