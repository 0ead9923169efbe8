import all from './jest.config.js';
import { SLOW_TIER } from './test/slow-tier.mjs';

/** @type {import('jest').Config} */
export default {
  ...all,
  testMatch: undefined,
  testRegex: SLOW_TIER.map((path) => `${path}.*\\.ts$`),
  testPathIgnorePatterns: [],
  globalSetup: '<rootDir>/test/support/slow-tier-installed.mjs',
};
