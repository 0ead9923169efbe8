/**
 * What a newcomer's `npm test` leaves to `npm run test:slow`: real failovers, crowds and crashes, and programs that run
 * for long. What they hold is held by a quick spec too, at a smaller size. Patterns of paths.
 */
export const SLOW_TIER = [
  'test/core/hand-off\\.spec',
  'test/docs/fencing\\.spec',
  'test/lab/(?!checker)',
  'test/page-client/browser\\.spec',
  `test/processes/(?:${[
    'force-unlock',
    'crash-succession',
    'many-waiters',
    'order-crash',
    'paused-holder',
    'quorum',
    'readers-writers',
    'semaphore',
    'several-keys',
    'stopped-waiter',
  ].join('|')})\\.spec`,
  `test/redis/(?:${[
    'cluster',
    'cluster-changes',
    'durability',
    'outage-diagnosis',
    'processes-everywhere',
    'quorum',
    'quorum-amnesia',
    'quorum-schedules',
    'schedules',
    'sentinel-failovers',
  ].join('|')})\\.spec`,
  'test/sample/(?:demo-runs\\.e2e|launcher\\.e2e|shared-pglite|shop-rounds\\.e2e)\\.spec',
  'test/store/(?:cluster|programs|quorum|simulated)\\.spec',
];
