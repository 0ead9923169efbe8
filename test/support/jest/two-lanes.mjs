import { fileURLToPath } from 'node:url';
import TestRunner from 'jest-runner';
import { PATIENT, TIMELESS } from '../../lanes.mjs';

const LOW_PRIORITY = fileURLToPath(new URL('low-priority.mjs', import.meta.url));

/**
 * Jest's runner, twice at the same time, with one worker each: for the specs that are about time, and for those that
 * are not, or that are patient.
 */
export default class TwoLanes extends TestRunner {
  async runTests(tests, watcher, options) {
    if (options.serial) return super.runTests(tests, watcher, options);
    const timeless = tests.filter(isTimeless);
    const timed = tests.filter((test) => !isTimeless(test));
    await Promise.all(
      [timed, timeless.map(withLowPriority)]
        .filter((lane) => lane.length > 0)
        .map((lane) => super.runTests(lane, watcher, options)),
    );
  }
}

const isTimeless = ({ path }) => [...TIMELESS, ...PATIENT].some((pattern) => new RegExp(pattern).test(path));

function withLowPriority({ context, ...test }) {
  const { config } = context;
  return { ...test, context: { ...context, config: { ...config, setupFiles: [...config.setupFiles, LOW_PRIORITY] } } };
}
