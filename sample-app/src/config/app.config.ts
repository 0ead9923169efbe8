import { registerAs, type ConfigType } from '@nestjs/config';
import type { Duration } from 'nest-redis-lock';
import { readEnvironment } from './environment.js';

/** The configuration of the app. Inject it by `appConfig.KEY`. */
export const appConfig = registerAs('app', () => {
  const environment = readEnvironment(process.env);
  return {
    port: Number(environment.PORT),
    databaseUrl: environment.DATABASE_URL,
    redisUrl: environment.REDIS_URL ?? 'redis://127.0.0.1:6379',
    /** How long a request waits for a busy account before it gets a 409. */
    lockWait: environment.LOCK_WAIT as Duration | undefined,
    /** How long Redis keeps a lock if its process dies. */
    lockLease: environment.LOCK_LEASE as Duration | undefined,
    /** How long requests may go on with their locks when the app stops, in ms. */
    shutdownGraceMs: 5_000,
    /** How long the simulated fraud check takes, in ms. */
    fraudCheckMs: Number(environment.FRAUD_CHECK_MS ?? 2),
    /** Where payouts go. */
    bankUrl: environment.BANK_URL,
    /** What lets operators see the locks, at `/locks`. Nobody does without one. */
    opsPassword: environment.OPS_PASSWORD,
    /** Allows `?unsafe=true`, which shows what happens without the lock. */
    demoUnsafe: environment.DEMO_UNSAFE === '1',
  };
});

export type AppConfig = ConfigType<typeof appConfig>;
