import type { Duration } from 'nest-redis-lock';

export const APP_OPTIONS = Symbol('APP_OPTIONS');

/** What one app process needs to know. */
export interface AppOptions {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  /** How long a request waits for a busy account before it answers 409. */
  readonly wait?: Duration;
  /** Allows `?unsafe=true`, which shows what happens without the lock. */
  readonly demoUnsafe?: boolean;
}

export function readOptions(env: NodeJS.ProcessEnv): AppOptions {
  const databaseUrl = readDatabaseUrl(env);
  if (!databaseUrl) {
    throw new Error('DATABASE_URL is not set. Set it, or run `npm start`, which brings its own database.');
  }
  return {
    databaseUrl,
    redisUrl: readRedisUrl(env) ?? 'redis://127.0.0.1:6379',
    wait: (env.LOCK_WAIT as Duration) || undefined,
    demoUnsafe: env.DEMO_UNSAFE === '1',
  };
}

export function readDatabaseUrl({ DATABASE_URL: url }: NodeJS.ProcessEnv): string | undefined {
  if (url && !/^postgres(ql)?:\/\/./.test(url)) {
    throw new Error('DATABASE_URL must look like postgres://user:password@host:5432/database');
  }
  return url || undefined;
}

export function readRedisUrl({ REDIS_URL: url }: NodeJS.ProcessEnv): string | undefined {
  if (url && !/^rediss?:\/\/./.test(url)) {
    throw new Error('REDIS_URL must look like redis://user:password@host:6379');
  }
  return url || undefined;
}

export function readPort({ PORT: port = '3000' }: NodeJS.ProcessEnv): number {
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) {
    throw new Error(`PORT is "${port}", but must be a number from 0 to 65535`);
  }
  return Number(port);
}
