import type { Connection, OutageLog } from './redis-connection.js';

/** The oldest version that the scripts run on. */
const OLDEST = { major: 6, minor: 2 };

/** Reports what makes a server unfit to keep locks, as far as `INFO` tells: once, when it is connected for the first time. */
export class ServerCheck {
  readonly #redis: Connection;
  readonly #log: Pick<OutageLog, 'unfit'>;
  #isDone = false;

  constructor(redis: Connection, log: Pick<OutageLog, 'unfit'>) {
    this.#redis = redis;
    this.#log = log;
  }

  /** Asks the server that was just connected, unless one has told before. Never rejects: a user that may not ask learns nothing. */
  async run(): Promise<void> {
    if (this.#isDone) return;
    this.#isDone = true;
    try {
      const info = await this.#redis.command('INFO');
      for (const problem of problemsOf(String(info))) this.#log.unfit(this.#redis.server, problem);
    } catch {
      this.#isDone = false;
    }
  }
}

/** Names what is wrong with a server, and what to do about it. */
export function problemsOf(info: string): string[] {
  return [evicts(info), isTooOld(info)].filter((problem) => problem !== undefined);
}

function evicts(info: string): string | undefined {
  const policy = field(info, 'maxmemory_policy');
  if (policy === undefined || policy === 'noeviction' || Number(field(info, 'maxmemory') ?? 0) === 0) return undefined;
  return (
    `it evicts keys when its memory is full ("maxmemory-policy ${policy}"). A lock that is evicted is granted to a second holder. ` +
    'Keep locks on a Redis with "maxmemory-policy noeviction", not on a cache.'
  );
}

function isTooOld(info: string): string | undefined {
  const version = field(info, 'redis_version');
  if (version === undefined) return undefined;
  const [major, minor] = version.split('.').map(Number);
  if (!(major! < OLDEST.major || (major === OLDEST.major && minor! < OLDEST.minor))) return undefined;
  return `its version is ${version}. Redis ${OLDEST.major}.${OLDEST.minor} or later, or Valkey, is needed.`;
}

function field(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(info)?.[1];
}
