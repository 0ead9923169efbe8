import { readDatabaseUrl, readRedisUrl } from '../app.options.js';
import { migrate } from '../database/migrate.js';
import { withoutPassword } from '../describe.js';
import type { ChildProcesses, Started } from '../processes/child-processes.js';
import type { ServiceReport } from '../processes/service-report.js';
import { whyRedisIsDown } from './redis-check.js';

const DATABASE = new URL('../processes/database.process.js', import.meta.url);
const REDIS = new URL('../processes/redis.process.js', import.meta.url);

export interface Services {
  /** Where the app finds them. */
  readonly env: { readonly DATABASE_URL: string; readonly REDIS_URL: string };
  /** Settle when one that was started here has ended. */
  readonly databaseEnded: Promise<unknown>;
  readonly redisEnded: Promise<unknown>;
}

/** Takes the database and the Redis that the environment names, starts what it doesn't, and says which they are. */
export async function startServices(children: ChildProcesses, dataFolder?: string): Promise<Services> {
  const given = { database: readDatabaseUrl(process.env), redis: readRedisUrl(process.env) };

  const database = given.database
    ? theirs(given.database, 'DATABASE_URL')
    : await children.start<ServiceReport>(DATABASE, { args: dataFolder ? [dataFolder] : [] });
  await migrate(database.report.url);
  announce('Database', database);

  const redis = given.redis ? theirs(given.redis, 'REDIS_URL') : await children.start<ServiceReport>(REDIS);
  announce('Redis', redis);
  const problem = await whyRedisIsDown(redis.report.url);
  if (problem) console.warn(`Redis does not answer (${problem}). Until it does, what needs a lock answers 503.`);

  return {
    env: { DATABASE_URL: database.report.url, REDIS_URL: redis.report.url },
    databaseEnded: database.ended,
    redisEnded: redis.ended,
  };
}

function theirs(url: string, variable: string): Started<ServiceReport> {
  return { report: { url, name: `from ${variable}` }, ended: new Promise(() => {}) };
}

function announce(what: string, { report }: Started<ServiceReport>): void {
  console.log(`${what.padEnd(9)} ${withoutPassword(report.url)}  ${report.name}`);
}
