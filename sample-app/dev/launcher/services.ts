import type { Environment } from '../../src/config/environment.js';
import { withoutPassword } from '../describe.js';
import type { ChildProcesses, Started } from '../processes/child-processes.js';
import type { RedisCommand } from '../processes/redis.process.js';
import type { ServiceReport } from '../processes/service-report.js';
import { startBank } from '../simulated-bank.js';
import { whyRedisIsDown } from './redis-check.js';

const DATABASE = new URL('../processes/database.process.js', import.meta.url);
const REDIS = new URL('../processes/redis.process.js', import.meta.url);

export interface Services {
  /** Where the app finds them. */
  readonly env: { readonly DATABASE_URL: string; readonly REDIS_URL: string; readonly BANK_URL: string };
  /** Takes Redis away for a while; undefined for one that was given. */
  readonly pauseRedis: ((ms: number) => void) | undefined;
  /** Settle when one that was started here has ended. */
  readonly databaseEnded: Promise<unknown>;
  readonly redisEnded: Promise<unknown>;
}

interface ServiceOptions {
  /** Where the database keeps its data. @default in memory */
  readonly dataFolder?: string;
  /** Says which services they are. @default on the standard output */
  readonly say?: (line: string) => void;
}

/** Takes the services that are given, starts the ones that aren't, and says which they are. */
export async function startServices(
  children: ChildProcesses,
  given: Pick<Partial<Environment>, 'DATABASE_URL' | 'REDIS_URL' | 'BANK_URL'>,
  { dataFolder, say = console.log }: ServiceOptions = {},
): Promise<Services> {
  const database = given.DATABASE_URL
    ? theirs(given.DATABASE_URL, 'DATABASE_URL')
    : await children.start<ServiceReport>(DATABASE, { args: dataFolder ? [dataFolder] : [] });
  say(announcement('Database', database));

  const ownRedis = given.REDIS_URL ? undefined : await children.start<ServiceReport>(REDIS);
  const redis = ownRedis ?? theirs(given.REDIS_URL!, 'REDIS_URL');
  say(announcement('Redis', redis));
  const problem = await whyRedisIsDown(redis.report.url);
  if (problem) console.warn(`Redis does not reply (${problem}). Until it does, requests that need a lock get 503.`);

  // The bank lives in this process: it is small, and ends with it.
  const bankUrl = given.BANK_URL ?? (await startBank()).url;
  return {
    env: { DATABASE_URL: database.report.url, REDIS_URL: redis.report.url, BANK_URL: bankUrl },
    pauseRedis: ownRedis && ((ms) => ownRedis.send({ pauseMs: ms } satisfies RedisCommand)),
    databaseEnded: database.ended,
    redisEnded: redis.ended,
  };
}

function theirs(url: string, variable: string): Started<ServiceReport> {
  return { report: { url, name: `from ${variable}` }, ended: new Promise(() => {}) };
}

function announcement(what: string, { report }: Started<ServiceReport>): string {
  return `${what.padEnd(9)} ${withoutPassword(report.url)}  ${report.name}`;
}
