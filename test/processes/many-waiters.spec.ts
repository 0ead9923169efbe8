import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { judge } from '../support/checker/verdict.js';
import { Contender, longestGapMs, lost, merged } from '../support/processes/contenders.js';
import { until } from '../support/deferred.js';
import { figures, LONG, sized } from '../support/lab.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';
import { ofClients, published, RedisMonitor } from '../support/redis/redis-monitor.js';
import { startRedis, type RedisServer } from '../support/redis/redis-server.js';
import { listening } from '../support/processes/stage.js';

const KEY = 'account:1';
const QUEUE = `{lock:${KEY}}:queue`;
const ALIVE = `{lock:${KEY}}:alive`;

/** Counts the commands in which each operation queues a token that has asked before. */
function askedAgain(commands: readonly (readonly string[])[]): number {
  const asked = new Set<string>();
  return commands.filter(([, , keyCount, ...rest]) => {
    const args = rest.slice(Number(keyCount));
    const tokens = args.filter((_, index) => index % 3 === 1);
    const queues = args.every((what, index) => index % 3 !== 0 || what.startsWith('queue'));
    const isAgain = queues && tokens.every((token) => asked.has(token));
    for (const token of tokens) asked.add(token);
    return isAgain;
  }).length;
}

describe('Many processes in line for one key', () => {
  let server: RedisServer;
  let redis: Redis;
  let here: ClosableLockService;
  let contenders: Contender[];
  let monitor: RedisMonitor | undefined;
  let killing: NodeJS.Timeout | undefined;

  beforeEach(async () => {
    server = await startRedis();
    redis = new Redis(server.url);
    here = lockService(redisStore({ connection: server.url }), { shutdownGrace: 0 });
    contenders = [];
  });

  afterEach(async () => {
    await Promise.all(contenders.map((contender) => contender.kill()));
    monitor?.stop();
    clearInterval(killing);
    await here.close();
    redis.disconnect();
    await server.stop();
  });

  /** Tokens by arrival, as Redis saw it. */
  const line = async () => (await redis.zrange(QUEUE, '0', '-1')).map((waiter) => waiter.split(' ')[0]!);

  const queued = (count: number) => until(async () => (await redis.zcard(QUEUE)) === count);

  const leftInRedis = async () => (await redis.keys('*')).sort();

  it('1,000 waiters of 4 processes keep their order while 10 % of them cancel and 10 % are killed', async () => {
    const plan = { callers: 300, sections: 1, holdMs: 0, arriveWithinMs: 500, options: { fair: true } };
    contenders = await Contender.start(server.url, KEY, plan, plan, plan, { ...plan, callers: 100 });
    const lock = await here.lock(KEY);
    for (const contender of contenders) contender.go();
    await queued(1000);
    const order = await line();
    const [canceller, lateCanceller, third, victim] = contenders as [Contender, Contender, Contender, Contender];
    canceller.cancelEvery(6);
    await queued(950);
    await victim.kill();
    await lock.unlock();
    lateCanceller.cancelEvery(6);

    const reports = await Promise.all([canceller, lateCanceller, third].map((contender) => contender.report()));
    const sections = merged(reports);
    const cancelled = reports.reduce((sum, report) => sum + report.cancelled, 0);
    expect(judge(sections).examples()).toBe('');
    expect(lost(sections)).toEqual([]);
    expect(sections.length + cancelled).toBe(900);
    expect(cancelled).toBeGreaterThanOrEqual(50);
    const wentIn = new Set(sections.map(({ token }) => token));
    expect(sections.map(({ token }) => token)).toEqual(order.filter((token) => wentIn.has(token)));
    // The killed ones keep their place, not the key, for as long as they count as alive.
    expect(await redis.exists(`lock:${KEY}`)).toBe(0);
    expect(await redis.zcard(QUEUE)).toBe(100);
    expect(await redis.pttl(QUEUE)).toBeLessThanOrEqual(10_000);
    expect(await redis.pttl(ALIVE)).toBeLessThanOrEqual(10_000);
    if (LONG) await until(async () => (await leftInRedis()).length === 1, 11_000);
    figures('1,000 waiters in 3 processes, 10 % killed, 10 % cancelled', 'the others keep their order, and finish', {
      'went in': sections.length,
      cancelled,
      'longest gap ms': longestGapMs(sections),
    });
  }, 60_000);

  it.each([
    ['fair', { fair: true }, sized(250, 2500)],
    ['default', {}, sized(1000, 25_000)],
  ])(
    'a free key is never left alone for 2 s though every subscription is killed again and again (%s)',
    async (name, options, sections) => {
      const plan = { callers: 4, sections, holdMs: 0, options };
      contenders = await Contender.start(server.url, KEY, plan, plan);
      let killed = 0;
      const kill = async () => (killed += Number(await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub')));
      killing = setInterval(() => void kill(), sized(100, 2000));
      for (const contender of contenders) contender.go();
      const all = merged(await Promise.all(contenders.map((contender) => contender.report())));
      clearInterval(killing);
      expect(all).toHaveLength(8 * sections);
      expect(judge(all).examples()).toBe('');
      expect(lost(all)).toEqual([]);
      expect(longestGapMs(all)).toBeLessThan(2000);
      expect(killed).toBeGreaterThanOrEqual(2);
      expect(await leftInRedis()).toEqual(['{lock:}:fence']);
      figures(`Subscriptions killed again and again (${name})`, 'nobody waits longer than hold + 2 s', {
        'hand-offs': all.length,
        killed,
        'longest gap ms': longestGapMs(all),
        'took ms': all.at(-1)!.endedAt - all[0]!.beganAt,
      });
    },
    LONG ? 300_000 : 60_000,
  );

  /**
   * Commands of clients for each time that somebody was inside; without those in which waiters only ask again, of which
   * each waiter may send one in 0.75 s: how many there are depends on how long the machine takes.
   */
  async function commandsPerSection(waiters: number, options: object): Promise<number> {
    const sections = Math.ceil(sized(600, 6000) / waiters);
    const plan = { callers: waiters / 2, sections, holdMs: 1, options };
    contenders = await Contender.start(server.url, KEY, plan, plan);
    monitor = await RedisMonitor.start(server.port);
    const startedAt = performance.now();
    for (const contender of contenders) contender.go();
    await Promise.all(contenders.map((contender) => contender.report()));
    const commands = ofClients(await monitor.commands());
    const tookMs = performance.now() - startedAt;
    monitor.stop();
    expect(commands.filter(([name]) => !/^eval/i.test(name!))).toEqual([]);
    const again = askedAgain(commands);
    expect(again).toBeLessThanOrEqual((waiters * tookMs) / 750);
    return (commands.length - again) / (sections * waiters);
  }

  it(
    'a contended section costs as many commands with 200 waiters as with 2: at most two',
    async () => {
      const few = await commandsPerSection(2, { fair: true });
      const many = await commandsPerSection(200, { fair: true });
      figures('Commands a section with 2 and 200 waiters (fair)', 'no more commands with many waiters', {
        2: few,
        200: many,
      });
      expect(few).toBeLessThan(2.2);
      expect(many).toBeLessThan(2.2);
    },
    LONG ? 300_000 : 60_000,
  );

  it('a section costs far fewer commands by default, the more callers the fewer', async () => {
    const few = await commandsPerSection(2, {});
    const many = await commandsPerSection(200, {});
    figures('Commands a section with 2 and 200 waiters (default)', 'no more commands with many waiters', {
      2: few,
      200: many,
    });
    expect(few).toBeLessThan(2.2);
    expect(many).toBeLessThan(0.5);
  }, 60_000);

  it('one release wakes one of 200 waiters, with one message', async () => {
    const plan = { callers: 50, sections: 1, holdMs: 600_000, options: { fair: true } };
    contenders = await Contender.start(server.url, KEY, plan, plan, plan, plan);
    const lock = await here.lock(KEY);
    for (const contender of contenders) contender.go();
    await queued(200);
    await listening(
      redis,
      contenders.map(({ child }) => child.process.pid!),
    );
    const order = await line();
    monitor = await RedisMonitor.start(server.port);
    await lock.unlock();
    for (let round = 0; round < sized(5, 100); round++) {
      const head = order[round]!;
      expect(await redis.get(`lock:${KEY}`)).toBe(head);
      expect(await redis.zcard(QUEUE)).toBe(199 - round);
      // From the second round on, the one who is forced out hears of it too.
      const forced = round > 0 ? [expect.stringContaining(`lost ${order[round - 1]}`)] : [];
      expect(published(await monitor.commands())).toEqual([...forced, expect.stringContaining(`granted ${head} `)]);
      // Whose lock is taken before it has begun queues again.
      await until(async () => (await here.inspect(KEY))?.holders[0]?.fence !== undefined);
      await monitor.commands();
      await here.forceUnlock(KEY);
    }
  }, 60_000);
});
