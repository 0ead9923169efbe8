import { randomUUID } from 'node:crypto';
import { Cluster, type Redis } from 'ioredis';
import { now } from '../../clock/deadline.js';
import { isLockError } from '../../errors/lock.error.js';
import { DEFAULT_MODULE_OPTIONS } from '../../module/redis-lock.resolved-options.js';
import type { RedisConnectionsOption } from '../../redis/connection/connection-option.js';
import { notConnected } from '../../redis/cluster/cluster-errors.js';
import { SLOTS } from '../../redis/cluster/cluster-slot.js';
import { redisClient } from '../../redis/connection/redis-client.js';
import { withoutCommand } from '../../redis/connection/redis-diagnosis.js';
import { infoField } from '../../redis/connection/server-check.js';
import type { LockService } from '../../service/lock.service.js';
import type { Action } from '../arguments/verb.js';
import { EXIT } from '../exit-codes.js';
import { inOwnWords } from '../own-words.js';
import { print } from '../print.js';
import { openLocks } from '../redis/open-locks.js';
import { redisPlace } from '../redis/redis-place.js';
import { jsonLine } from '../show/json-line.js';
import { examineServer, type ExamineOptions } from './examine-server.js';
import { shownFindings, type Finding } from './finding.js';

/** Examines the servers that keep the locks. Ends with 1 when something would go wrong. */
export const doctor: Action = async (given) => {
  const { locks, commandTimeoutMs, close } = openLocks(given, { warn: () => undefined });
  const place = redisPlace(given);
  try {
    const prefix = given.text('prefix') ?? DEFAULT_MODULE_OPTIONS.keyPrefix;
    const found = await examineAll(place.connection, { prefix, commandTimeoutMs });
    if (found.some(isReachable)) found.push(await lockFinding(locks));
    const isRedisGiven = given.text('redis') !== undefined;
    const findings = found.map((finding) => ({ ...finding, text: inOwnWords(finding.text, isRedisGiven) }));
    await print(given.flag('json') ? jsonLine(findings) : shownFindings(findings));
    if (!findings.some(isReachable)) return EXIT.unavailable;
    return findings.some(({ level }) => level === 'problem') ? EXIT.no : EXIT.ok;
  } finally {
    place.close();
    await close();
  }
};

const isReachable = ({ check, level }: Finding): boolean => check !== 'connection' || level !== 'problem';

async function examineAll(
  connection: RedisConnectionsOption,
  shared: Pick<ExamineOptions, 'prefix' | 'commandTimeoutMs'>,
): Promise<Finding[]> {
  if (connection instanceof Cluster) return examineCluster(connection, shared);
  const connections = Array.isArray(connection) ? connection : [connection];
  const examined = await Promise.all(
    connections.map(async (one) => {
      const { redis } = redisClient(one, shared.commandTimeoutMs);
      // A replica refuses what is asked of it, and would be left each time.
      redis.options.reconnectOnError = null;
      const findsMaster = Boolean(redis.options.sentinels);
      const about = nameOf(redis);
      try {
        const findings = await examineServer(redis, { ...shared, about, findsMaster, isNode: connections.length > 1 });
        const info = connections.length > 1 ? await redis.info('server').catch(() => '') : '';
        return { about, findings, server: infoField(info, 'run_id') };
      } finally {
        redis.disconnect();
      }
    }),
  );
  return [...examined.flatMap(({ findings }) => findings), ...twinFindings(examined)];
}

/** Finds nodes of a quorum that are one server, by several names. */
function twinFindings(nodes: readonly { readonly about: string; readonly server: string | undefined }[]): Finding[] {
  return nodes.flatMap(({ about, server }, at): Finding[] => {
    const twin = nodes.slice(0, at).find((node) => node.server !== undefined && node.server === server);
    if (!twin) return [];
    const text = `It is the same server as ${twin.about}, so it has no vote of its own. Name each server once.`;
    return [{ level: 'problem', about, check: 'server', text }];
  });
}

async function examineCluster(
  cluster: Cluster,
  shared: Pick<ExamineOptions, 'prefix' | 'commandTimeoutMs'>,
): Promise<Finding[]> {
  let cause: Error | undefined;
  cluster.on('node error', (error: Error) => (cause = withoutCommand(error)));
  try {
    await cluster.connect();
  } catch (error) {
    const text = `The cluster can't be reached: ${notConnected(cause ?? (error as Error))}`;
    return [{ level: 'problem', about: 'the cluster', check: 'connection', text }];
  }
  const masters = cluster.nodes('master');
  const findings = await Promise.all(
    masters.map((redis) =>
      examineServer(redis, { ...shared, about: nameOf(redis), findsMaster: true, isNode: false, isOfCluster: true }),
    ),
  );
  return [...slotFindings(cluster), ...findings.flat()];
}

function slotFindings(cluster: Cluster): Finding[] {
  const served = Array.from(cluster.slots).filter(Boolean).length;
  if (served === SLOTS) return [];
  const about = 'the cluster';
  const assign = 'Look at "CLUSTER NODES", and assign them: redis-cli --cluster fix.';
  if (served > 0) {
    const text = `${SLOTS - served} of its ${SLOTS} slots have no node: there is no lock on their keys. ${assign}`;
    return [{ level: 'problem', about, check: 'slots', text }];
  }
  const alone = 'A node that has met no other names no address: give it cluster-announce-ip.';
  const text = `It names no node for any slot. ${assign} ${alone}`;
  return [{ level: 'problem', about, check: 'connection', text }];
}

function nameOf({ options: { host, port, path, sentinels, name } }: Redis): string {
  return sentinels ? `the master "${name}" behind Sentinel` : (path ?? `${host}:${port}`);
}

/** Takes a lock as an app does. */
async function lockFinding(locks: LockService): Promise<Finding> {
  const about = 'locks';
  const askedAt = now();
  try {
    await locks.withLock(`nest-redis-lock:doctor:${randomUUID()}`, () => undefined, { wait: 0, label: 'doctor' });
    return {
      level: 'ok',
      about,
      check: 'a lock',
      text: `It was acquired and released in ${(now() - askedAt).toFixed(1)} ms.`,
    };
  } catch (error) {
    const text = isLockError(error) ? error.detail : String(error);
    return { level: 'problem', about, check: 'a lock', text };
  }
}
