import type { Connection } from './connection.js';
import type { OutageLog } from './outage-log.js';

type CheckedServer = Pick<Connection, 'command' | 'findsMaster' | 'server'>;

/** The oldest version that the scripts run on. */
const OLDEST = { major: 6, minor: 2 };

/** Reports what makes a server unfit to keep locks, as far as `INFO` tells: once, after the first connection. */
export class ServerCheck {
  readonly #redis: Connection;
  readonly #log: Pick<OutageLog, 'unfit'>;
  #isDone = false;

  constructor(redis: Connection, log: Pick<OutageLog, 'unfit'>) {
    this.#redis = redis;
    this.#log = log;
  }

  /** Checks the server of a new connection, unless an earlier one was checked. Never rejects. */
  async run(): Promise<void> {
    if (this.#isDone) return;
    this.#isDone = true;
    const problems = await problemsAt(this.#redis);
    this.#isDone = problems !== undefined;
    for (const problem of problems ?? []) this.#log.unfit(this.#redis.server, problem);
  }
}

/**
 * Says what is wrong with a server that grants locks, and with the subscription there. Each sentence names the
 * server. Never rejects.
 */
export async function healthWarnings(
  redis: CheckedServer,
  { isUnsubscribed }: { readonly isUnsubscribed: boolean },
): Promise<readonly string[]> {
  const problems = [...((await problemsAt(redis)) ?? [])];
  if (isUnsubscribed)
    problems.push(
      'the subscription that wakes the waiters of this app is down: until it is back, they poll about once a second.',
    );
  return problems.map((problem) => `Redis at ${redis.server}: ${problem}`);
}

/**
 * Finds what is wrong with a server. Never rejects: resolves with undefined when the server does not say, because the
 * user may not ask.
 */
async function problemsAt(redis: CheckedServer): Promise<readonly string[] | undefined> {
  try {
    return problemsOf(String(await redis.command('INFO')), redis);
  } catch {
    return undefined;
  }
}

/**
 * Reads from `INFO` what is wrong with a server, and what to do about it.
 *
 * @param findsMaster whether the client finds the master by itself: then a replica is only a moment of a failover
 */
export function problemsOf(
  info: string,
  { findsMaster = false }: { readonly findsMaster?: boolean } = {},
): readonly string[] {
  return [evicts(info), isTooOld(info), findsMaster ? undefined : isReplica(info)].filter(
    (problem) => problem !== undefined,
  );
}

function evicts(info: string): string | undefined {
  const policy = infoField(info, 'maxmemory_policy');
  if (policy === undefined || policy === 'noeviction' || Number(infoField(info, 'maxmemory') ?? 0) === 0)
    return undefined;
  return (
    `it evicts keys when its memory is full ("maxmemory-policy ${policy}"). ` +
    'A lock that is evicted is granted to a second holder. ' +
    'Keep locks on a Redis with "maxmemory-policy noeviction", not on a cache.'
  );
}

function isTooOld(info: string): string | undefined {
  const version = infoField(info, 'redis_version');
  if (version === undefined) return undefined;
  const [major, minor] = version.split('.').map(Number);
  if (!(major! < OLDEST.major || (major === OLDEST.major && minor! < OLDEST.minor))) return undefined;
  return `its version is ${version}. Redis ${OLDEST.major}.${OLDEST.minor} or later, or Valkey, is needed.`;
}

/** A replica in a cluster needs no warning: it replies MOVED when it is asked for a lock. */
function isReplica(info: string): string | undefined {
  if (infoField(info, 'role') !== 'slave' || infoField(info, 'cluster_enabled') === '1') return undefined;
  const master = `${infoField(info, 'master_host')}:${infoField(info, 'master_port')}`;
  return (
    `it is a replica, of ${master}, and only a master keeps locks. ` +
    'Give the master as "connection", or the Sentinels that know it.'
  );
}

/** Reads a field of `INFO`. */
export function infoField(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1];
}
