import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { Redis } from 'ioredis';
import { now } from '../../clock/deadline.js';
import { subscriberOf } from '../../redis/connection/further-client.js';
import { borrowedClient } from '../../redis/connection/redis-client.js';
import { diagnosis, silence, withoutCommand } from '../../redis/connection/redis-diagnosis.js';
import { infoField, problemsOf } from '../../redis/connection/server-check.js';
import type { Finding } from './finding.js';
import { CLUSTER_RIGHTS, lackOf, rights } from './rights.js';

/** How often the round trip is measured. */
const PINGS = 20;
/** A clock that is further from ours is worth a note, in ms. */
const CLOCK_OFF_MS = 1000;
/** The part of its memory that a server may use, before that is a problem. */
const FULL = 0.9;

export interface ExamineOptions {
  readonly about: string;
  readonly prefix: string;
  readonly commandTimeoutMs: number;
  /** Whether the client finds the master by itself. */
  readonly findsMaster: boolean;
  /** Whether it is one of several masters that decide together. */
  readonly isNode: boolean;
  /** Whether it is a node of a Redis Cluster. */
  readonly isOfCluster?: boolean;
}

/** Finds out what would go wrong with locks on a server. Never rejects. */
export async function examineServer(redis: Redis, options: ExamineOptions): Promise<readonly Finding[]> {
  const { about } = options;
  const found = (level: Finding['level'], check: string, text: string): Finding => ({ level, about, check, text });
  const noted: { error?: Error } = {};
  redis.on('error', (error: Error) => (noted.error = error));
  try {
    if (redis.status !== 'ready') await connected(redis, options.commandTimeoutMs);
  } catch (error) {
    redis.disconnect();
    return [found('problem', 'connection', diagnosis(withoutCommand(noted.error ?? (error as Error))))];
  }
  redis.options.commandTimeout = options.commandTimeoutMs;
  const examinations = [serverFindings, rightsFinding, channelFinding, roundTripFinding, clockFinding];
  const findings: Finding[] = [];
  for (const examine of examinations) {
    try {
      for (const [level, check, text] of await examine(redis, options)) findings.push(found(level, check, text));
    } catch (error) {
      if (isSilence(error)) {
        const ms = options.commandTimeoutMs;
        const text = `It took the connection, and then said nothing for ${ms} ms: it hangs, or its writes are paused.`;
        return [...findings, found('problem', 'connection', text)];
      }
      findings.push(found('problem', 'connection', diagnosis(withoutCommand(error as Error))));
    }
  }
  return findings;
}

/** Whether it is the error of ioredis for a command that got no reply in time. */
const isSilence = (error: unknown): boolean => (error as Error).message === 'Command timed out';

type Found = readonly [level: Finding['level'], check: string, text: string];

async function connected(redis: Redis, timeoutMs: number): Promise<void> {
  const ready = once(redis, 'ready', { signal: AbortSignal.timeout(timeoutMs) });
  if (redis.status === 'wait') redis.connect().catch(() => undefined);
  await ready.catch(() => Promise.reject(silence(redis, { connectedAt: -Infinity, timeoutMs, lastError: undefined })));
}

async function serverFindings(redis: Redis, { findsMaster, isNode }: ExamineOptions): Promise<Found[]> {
  const info = await redis.info().catch((error: Error) => error);
  if (info instanceof Error && isSilence(info)) throw info;
  if (info instanceof Error) return [['note', 'server', `It does not say what it is: ${info.message}`]];
  const problems = problemsOf(info, { findsMaster }).map((problem): Found => ['problem', 'server', problem]);
  const read = (name: string) => infoField(info, name);
  const name = read('valkey_version') ? `Valkey ${read('valkey_version')}` : `Redis ${read('redis_version')}`;
  const server: Found = [
    'ok',
    'server',
    `${name}, ${read('role') ?? 'of unknown role'}, up for ${read('uptime_in_days')} days`,
  ];
  return [...(problems.length > 0 ? problems : [server]), ...memory(read), ...afterFailure(read, isNode)];
}

function memory(read: (name: string) => string | undefined): Found[] {
  const [most, used] = [Number(read('maxmemory') ?? 0), Number(read('used_memory') ?? 0)];
  if (most === 0 || used < most * FULL) return [];
  const percent = Math.round((used / most) * 100);
  return [
    ['problem', 'memory', `${percent} % of its "maxmemory" is used: when it is full, no lock is granted. Raise it.`],
  ];
}

function afterFailure(read: (name: string) => string | undefined, isNode: boolean): Found[] {
  if (isNode) return [];
  if (Number(read('connected_slaves') ?? 0) > 0 && read('cluster_enabled') !== '1')
    return [
      [
        'note',
        'failover',
        'It has replicas. One that takes over may lack the last locks, and grant them again: ' +
          'see "durability" in docs/guides/failover.md, and send the fence to your database.',
      ],
    ];
  if (read('aof_enabled') === '1') return [];
  return [
    [
      'note',
      'restart',
      'It keeps no append-only file: after a restart it has forgotten all locks. Holders notice, but others may be in by then.',
    ],
  ];
}

/** Names the user. It asks only if nothing else says so: a user with no more than the rights for locks may not ask. */
const userOf = async (redis: Redis): Promise<string> => {
  const { username, password } = redis.options;
  if (username || password) return username || 'default';
  return String(await redis.call('ACL', 'WHOAMI').catch(() => 'default'));
};

const lacking = (user: string, rights: readonly string[]): string =>
  `The user "${user}" lacks rights. An administrator can run: ACL SETUSER ${user} ${rights.join(' ')}`;

async function rightsFinding(redis: Redis, { prefix, isOfCluster }: ExamineOptions): Promise<Found[]> {
  const user = await userOf(redis);
  const text = `${prefix}nest-redis-lock:doctor:${randomUUID()}`;
  const patterns = { keys: `~${prefix}* ~{${prefix}*`, channels: `&{${prefix}}:wake:*` };
  const names = { text, set: `{${text}}:queue`, channel: `{${prefix}}:wake:doctor` };
  const missing = new Set<string>();
  const unknown = new Set<string>();
  for (const { name, command } of [...rights(names), ...(isOfCluster ? CLUSTER_RIGHTS : [])]) {
    const [first, ...rest] = command;
    const error = await redis.call(String(first), ...rest).then(
      () => undefined,
      (error: Error) => error,
    );
    const lack = error && lackOf(name, error, patterns);
    if (lack && 'right' in lack) missing.add(lack.right);
    else if (lack) unknown.add(lack.unknown);
    else if (error && error.name !== 'ReplyError') throw error;
  }
  const found: Found[] = [];
  if (unknown.size > 0)
    found.push([
      'problem',
      'rights',
      `It does not know ${[...unknown].join(', ')}. Connect to Redis itself, not to a proxy or a Sentinel.`,
    ]);
  if (missing.size > 0) found.push(['problem', 'rights', lacking(user, [...missing])]);
  return found.length > 0 ? found : [['ok', 'rights', `The user "${user}" may do what locks need.`]];
}

async function channelFinding(redis: Redis, { prefix, commandTimeoutMs }: ExamineOptions): Promise<Found[]> {
  const channel = `{${prefix}}:wake:doctor:${randomUUID()}`;
  const noted: { error?: Error } = {};
  const subscriber = subscriberOf(borrowedClient(redis), commandTimeoutMs);
  subscriber.on('error', (error: Error) => (noted.error = error));
  try {
    await connected(subscriber, commandTimeoutMs).catch((error: Error) => Promise.reject(noted.error ?? error));
    await subscriber.subscribe(channel);
    const heard = once(subscriber, 'message', { signal: AbortSignal.timeout(commandTimeoutMs) });
    const sentAt = now();
    await Promise.all([heard, redis.publish(channel, 'doctor')]);
    return [['ok', 'channel', `A message arrives after ${(now() - sentAt).toFixed(1)} ms: waiters are woken.`]];
  } catch (error) {
    if (isSilence(error)) throw error;
    const text = `Waiters are not woken, and poll about once a second: ${await whyNotHeard(error as Error, redis)}`;
    return [['problem', 'channel', text]];
  } finally {
    subscriber.disconnect();
  }
}

async function whyNotHeard(error: Error, redis: Redis): Promise<string> {
  if (error.name === 'AbortError') return 'the message did not arrive';
  if (/^NOPERM.*'subscribe'/.test(error.message)) return lacking(await userOf(redis), ['+subscribe']);
  return diagnosis(withoutCommand(error));
}

async function roundTripFinding(redis: Redis, { commandTimeoutMs }: ExamineOptions): Promise<Found[]> {
  const times: number[] = [];
  for (let at = 0; at < PINGS; at++) {
    const sentAt = now();
    await redis.ping().catch((error: Error) => {
      if (!error.message.startsWith('NOPERM')) throw error;
    });
    times.push(now() - sentAt);
  }
  times.sort((a, b) => a - b);
  const [median, longest] = [times[PINGS / 2]!, times.at(-1)!];
  const text = `${median.toFixed(1)} ms in the middle, ${longest.toFixed(1)} ms at most`;
  return longest < commandTimeoutMs / 4
    ? [['ok', 'round trip', `${text}.`]]
    : [
        [
          'problem',
          'round trip',
          `${text}: too near to the command time-out of ${commandTimeoutMs} ms. Raise "commandTimeout".`,
        ],
      ];
}

async function clockFinding(redis: Redis): Promise<Found[]> {
  const sentAt = Date.now();
  const [seconds, micros] = (await redis.time()) as [unknown, unknown];
  const offMs = Number(seconds) * 1000 + Number(micros) / 1000 - (sentAt + Date.now()) / 2;
  const text = `The time of day there is ${Math.abs(offMs / 1000).toFixed(1)} s ${offMs > 0 ? 'ahead of' : 'behind'} ours.`;
  if (Math.abs(offMs) < CLOCK_OFF_MS) return [['ok', 'clock', text]];
  return [['note', 'clock', `${text} Locks count by monotonic clocks. But let no clock be set while locks are held.`]];
}
