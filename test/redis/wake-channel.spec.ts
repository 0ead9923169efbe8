import { EventEmitter } from 'node:events';
import { expect, it, jest } from '@jest/globals';
import type { Redis } from 'ioredis';
import { WakeChannel } from '../../lib/redis/wake/wake-channel.js';
import { deferred, turn } from '../support/deferred.js';

it('a wake channel that is closed while it subscribes does not report that, and does not try again', async () => {
  const subscribed = deferred<number>();
  let subscribes = 0;
  const redis = Object.assign(new EventEmitter(), {
    connect: async () => undefined,
    subscribe: () => (subscribes++, subscribed.promise),
    disconnect: () => subscribed.reject(new Error('Connection is closed.')),
  });
  const said: string[] = [];
  const channel = new WakeChannel(() => redis as unknown as Redis, {
    message: () => undefined,
    up: () => said.push('up'),
    down: () => said.push('down'),
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
    const channel = new WakeChannel(() => redis as unknown as Redis, {
      message: () => undefined,
      up: (again) => said.push(`up ${again}`),
      down: () => said.push('down'),
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
