import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { Redis } from 'ioredis';
import { LockUnavailableError } from 'nest-redis-lock';
import { detailOf } from '../../lib/errors/lock.error.js';
import { RefusedError } from '../../lib/redis/connection/connection-errors.js';
import { WakeChannel } from '../../lib/redis/wake/wake-channel.js';
import { deferred, turn } from '../support/deferred.js';

/** Publishes; one subscriber is there. */
const NOBODY_ELSE = async () => 1;

it('a wake channel that is closed while it subscribes does not report that, and does not try again', async () => {
  const subscribed = deferred<number>();
  let subscribes = 0;
  const redis = Object.assign(new EventEmitter(), {
    connect: async () => undefined,
    subscribe: () => (subscribes++, subscribed.promise),
    disconnect: () => subscribed.reject(new Error('Connection is closed.')),
  });
  const said: string[] = [];
  const channel = new WakeChannel(() => redis as unknown as Redis, NOBODY_ELSE, {
    message: () => undefined,
    up: () => said.push('up'),
    down: () => said.push('down'),
    mute: () => undefined,
  });
  const opened = channel.open();
  redis.emit('ready');
  expect(subscribes).toBe(1);
  channel.close();
  await opened;
  await turn();
  expect({ said, state: channel.state }).toEqual({ said: [], state: 'new' });
});

it('a wake channel whose connection neither comes nor fails is reported, and when it has subscribed', async () => {
  jest.useFakeTimers({ doNotFake: ['setImmediate'] });
  try {
    const redis = Object.assign(new EventEmitter(), {
      connect: async () => undefined,
      subscribe: async () => 1,
      disconnect: () => undefined,
    });
    const said: string[] = [];
    const channel = new WakeChannel(() => redis as unknown as Redis, NOBODY_ELSE, {
      message: () => undefined,
      up: (again) => said.push(`up ${again}`),
      down: () => said.push('down'),
      mute: () => undefined,
    });
    const opened = channel.open();
    jest.advanceTimersByTime(2_000);
    await opened;
    expect(said).toEqual(['down']);
    redis.emit('ready');
    await turn();
    expect({ said, state: channel.state }).toEqual({ said: ['down', 'up true'], state: 'up' });
    jest.advanceTimersByTime(10_000);
    expect(channel.state).toBe('up');
    channel.close();
  } finally {
    jest.useRealTimers();
  }
});

describe('A wake channel that is checked', () => {
  let redis: EventEmitter & { readonly disconnect: jest.Mock };
  let publish: jest.Mock<(channel: string, message: string) => Promise<number>>;
  let heard: string[];
  let channel: WakeChannel;

  beforeEach(async () => {
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick'] });
    redis = Object.assign(new EventEmitter(), {
      connect: async () => undefined,
      subscribe: async () => 1,
      ping: async () => 'PONG',
      disconnect: jest.fn(),
    });
    publish = jest.fn(async () => 1);
    heard = [];
    channel = new WakeChannel(() => redis as unknown as Redis, publish, {
      message: (text) => heard.push(text),
      up: () => undefined,
      down: () => undefined,
      mute: (error) => heard.push(detailOf(error)),
    });
    channel.name('lock:wake:me');
    void channel.open();
    redis.emit('ready');
    await turn();
    jest.advanceTimersByTime(1);
  });

  afterEach(() => {
    channel.close();
    jest.useRealTimers();
  });

  /** Checks, and lets the time for an echo pass. */
  async function check(key?: string): Promise<void> {
    channel.checkAlive(key);
    await turn();
    jest.advanceTimersByTime(1_000);
    await turn();
    await turn();
  }

  it('a wake channel that hears itself stays as it is, and tells nobody of that', async () => {
    publish.mockImplementation(async (name, text) => {
      redis.emit('message', name, text);
      return 1;
    });
    await check();
    expect(publish.mock.calls).toEqual([['lock:wake:me', 'echo', { besides: redis }]]);
    expect(heard).toEqual([]);
    expect(redis.disconnect).not.toHaveBeenCalled();
  });

  it('a wake channel reconnects at once when nobody is subscribed where locks are released', async () => {
    publish.mockImplementation(async (name, text) => {
      // The server that it is connected to is a replica of that one by now, and gets its messages.
      redis.emit('message', name, text);
      return 0;
    });
    channel.checkAlive();
    await turn();
    expect(redis.disconnect.mock.calls).toEqual([[true]]);
  });

  it('a wake channel that does not hear itself reconnects', async () => {
    await check();
    expect(redis.disconnect.mock.calls).toEqual([[true]]);
  });

  it.each([
    ['any message shows that it hears', undefined, 0],
    ['only the echo over the node of the key shows that it hears, where others have nodes of their own', 'a', 1],
  ])('of a wake channel, %s', async (_what, key, reconnects) => {
    publish.mockImplementation(async (name) => {
      redis.emit('message', name, 'of another node');
      return 1;
    });
    await check(key);
    expect(publish.mock.calls).toEqual([['lock:wake:me', 'echo', { key, besides: redis }]]);
    expect(redis.disconnect).toHaveBeenCalledTimes(reconnects);
  });

  it('a wake channel does not listen for itself more often than every five seconds', async () => {
    for (let seconds = 0; seconds < 10; seconds++) await check();
    expect(publish).toHaveBeenCalledTimes(2);
  });

  it('a wake channel that is checked now and then listens for itself after five silent seconds', async () => {
    const checks = async (times: number) => {
      for (let time = 0; time < times; time++) {
        jest.advanceTimersByTime(500);
        channel.checkNowAndThen();
        await turn();
      }
      return publish.mock.calls.length;
    };
    publish.mockImplementation(async (name, text) => {
      redis.emit('message', name, text);
      return 1;
    });
    expect(await checks(9)).toBe(0);
    redis.emit('message', 'lock:wake:me', 'contended me.1');
    expect(await checks(9)).toBe(0);
    expect(await checks(1)).toBe(1);
    expect(await checks(10)).toBe(2);
  });

  it('a wake channel says once that its user may publish nothing, and nothing of other failures', async () => {
    const refuse = (reply: string) => publish.mockRejectedValueOnce(new RefusedError(reply, new Error(reply)));
    publish.mockRejectedValueOnce(new LockUnavailableError('It is silent.'));
    refuse('LOADING Redis is loading the dataset in memory');
    refuse("NOPERM this user has no permissions to run the 'publish' command");
    refuse("ERR ACL failure in script: this user has no permissions to run the 'publish' command");
    for (let time = 0; time < 4; time++) {
      await check();
      jest.advanceTimersByTime(5_000);
    }
    expect(publish).toHaveBeenCalledTimes(4);
    expect(heard).toEqual(["NOPERM this user has no permissions to run the 'publish' command"]);
  });

  it('a wake channel stays as it is when nothing can be published, or when it was made anew meanwhile', async () => {
    publish.mockRejectedValueOnce(new Error('NOPERM'));
    await check();
    jest.advanceTimersByTime(5_000);
    channel.checkAlive();
    await turn();
    redis.emit('close');
    jest.advanceTimersByTime(500);
    redis.emit('ready');
    await turn();
    jest.advanceTimersByTime(500);
    await turn();
    await turn();
    expect(publish).toHaveBeenCalledTimes(2);
    expect(redis.disconnect).not.toHaveBeenCalled();
  });
});
