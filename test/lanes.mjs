/**
 * Specs that run beside the others, in a second process of low priority: those that are not about time, start no server
 * and no process, and so can be hurt by nothing that runs at the same time. Patterns of paths.
 */
export const TIMELESS = [
  'test/api/',
  'test/architecture/',
  'test/cli/',
  'test/collections/',
  // Their clocks are set by the test.
  'test/core/(?:lease-end|suspension|time-wheel)\\.spec',
  'test/core/(?:late-messages|lock-context|queued-work)\\.spec',
  'test/docs/(?!fencing)',
  'test/tools/',
  'test/page-client/(?!browser)',
  'test/lab/checker\\.spec',
  `test/nest/(?!(?:${[
    'default-label',
    'http',
    'http-shutdown',
    'http2-reset',
    'logs',
    'module\\.redis',
    'terminus',
    'testing-module',
    'with-lock\\.loss',
    'with-lock\\.streams',
  ].join('|')})\\.spec)`,
  'test/redis/(?:fence-floor|ioredis-version|older-servers|orphans|wake-channel)\\.spec',
  'test/sample/(?:environment|shop-client)\\.spec',
  'test/tools/',
];

/** Specs that run there too, although they start servers, processes or a browser: they wait for as long as it takes. */
export const PATIENT = [
  'test/lab/script-mistakes\\.spec',
  'test/page-client/browser\\.spec',
  'test/page/(?:browser|page-data)\\.spec',
  'test/processes/(?:cli-.*|lazy-parser|opentelemetry)\\.spec',
  'test/sample/(?:accounts|demo-page|demo-runs|launcher|shop|shop-rounds)\\.e2e\\.spec',
  'test/store/simulated\\.spec',
];
