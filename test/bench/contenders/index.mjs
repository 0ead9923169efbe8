import { readFileSync } from 'node:fs';
import { versionOf } from '../rivals/rival.mjs';

const contender = (file, form, name) => ({ file, form, name });

export const floor = contender('raw', 'plain', 'floor: SET NX PX + EVALSHA');
export const floorAgain = contender('raw', 'plain', 'the floor again');
export const fencedFloor = contender('raw', 'fenced', 'floor, with a fence and a look at the queue');
export const pipelinedFloor = contender('raw', 'auto-pipelining', 'floor, auto-pipelining');
export const batched = contender('batched', 'tick', 'the calls of a tick in one script, by hand');
export const byHand = contender('by-hand', 'whole', 'by hand, with the same promises');
export const byHandLocal = contender('by-hand-local', 'whole', 'by hand, with the same promises');
export const baton = contender('baton', 'BLPOP', 'floor: BLPOP baton');
export const published = contender('published', 'PUBLISH', 'a queue and PUBLISH, by hand');
export const promises = contender('promises', 'queue', 'promises, without Redis');
export const renewals = contender('renewals', 'pipelined', 'floor: pipelined PEXPIRE');

export const withLock = contender('ours', 'withLock', 'nest-redis-lock `withLock`');
export const onIoredis5 = {
  ...withLock,
  name: `${withLock.name}, on ioredis 5`,
  preload: new URL('../../support/redis/ioredis-5.mjs', import.meta.url).href,
};
export const decorated = contender('ours', '@WithLock', 'nest-redis-lock `@WithLock`');
export const fair = contender('ours', 'fair: true', 'nest-redis-lock `fair: true`');
export const durable = [1, 2].map((replicas) =>
  contender('ours', `durability: ${replicas}`, `with \`durability\` of ${replicas} replica${replicas > 1 ? 's' : ''}`),
);

/** What somebody wants to hear of a lock; the first is the floor of the others. */
export const heard = [
  { ...withLock, name: 'nobody listens' },
  { ...withLock, name: 'nobody listens, again' },
  contender('ours', 'a subscriber', 'one subscriber to `events`'),
  contender('ours', 'warnAfter', 'nobody listens, with `warnAfter`'),
  contender('ours', 'a subscriber and warnAfter', 'one subscriber, with `warnAfter`'),
  contender('ours', 'LockPrometheusModule', '`LockPrometheusModule`'),
  contender('ours', 'LockOpenTelemetryModule, metrics', '`LockOpenTelemetryModule`, metrics'),
  contender('ours', 'LockOpenTelemetryModule, metrics and spans', '`LockOpenTelemetryModule`, metrics and spans'),
  ...(process.env.BENCH_OTHER
    ? [{ ...withLock, name: 'nobody listens, in the other build', build: process.env.BENCH_OTHER }]
    : []),
];

/** Each library once, in its plainest form. */
export const rivals = [
  contender('redis-semaphore', 'Mutex', 'redis-semaphore'),
  contender('redlock', 'acquire', 'redlock'),
  contender('redlock-universal', 'acquire', 'redlock-universal'),
  contender('murlock', 'runWithLock', 'murlock'),
  contender('nest-redlock', 'using', '@anchan828/nest-redlock'),
  contender('simple-redis-mutex', 'lock', 'simple-redis-mutex'),
];

/** The forms that wrap a function and renew the lease, and the decorators. */
export const otherForms = [
  contender('redlock', 'using', 'redlock `using`'),
  contender('redlock-universal', 'using', 'redlock-universal `using`'),
  contender('murlock', '@MurLock', 'murlock `@MurLock`'),
  contender('nest-redlock', '@Redlock', '@anchan828/nest-redlock `@Redlock`'),
];

/** Name, version and options of each library, as it runs here. */
export async function lineUp() {
  const described = rivals.map(async ({ file, name }) => [
    `${name} ${versionOf(name)}`,
    (await import(`./${file}.mjs`)).options,
  ]);
  const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url)));
  return [[`nest-redis-lock ${version}`, (await import('./ours.mjs')).options], ...(await Promise.all(described))];
}
