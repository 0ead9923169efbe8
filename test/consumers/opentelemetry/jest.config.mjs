// Runs specs of this repository on the OpenTelemetry that the app in OPENTELEMETRY_APP has installed.
import { join } from 'node:path';
import { env } from 'node:process';
import config from '../../../jest.config.js';

/** @type {import('jest').Config} */
export default {
  ...config,
  rootDir: join(import.meta.dirname, '../../..'),
  moduleNameMapper: {
    '^(@opentelemetry/.*)$': join(env.OPENTELEMETRY_APP, 'node_modules/$1'),
    ...config.moduleNameMapper,
  },
};
