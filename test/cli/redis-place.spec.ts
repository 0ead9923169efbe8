import { Cluster } from 'ioredis';
import { describe, expect, it } from '@jest/globals';
import { Arguments } from '../../lib/cli/arguments/arguments.js';
import { redisPlace } from '../../lib/cli/redis/redis-place.js';

const place = (redis: readonly string[], env: NodeJS.ProcessEnv = {}) =>
  redisPlace(new Arguments([], [], { redis }), env);

const connection = (...redis: string[]) => place(redis).connection;

describe('Where Redis is', () => {
  it('is what --redis says, and else what REDIS_URL says', () => {
    const env = { REDIS_URL: 'redis://b' };
    expect(place(['redis://a'], env).connection).toBe('redis://a');
    expect(place([], env).connection).toBe('redis://b');
  });

  it.each([
    [[], {}],
    [[''], { REDIS_URL: 'redis://a' }],
    [[], { REDIS_URL: '' }],
  ])('is never guessed: %j, %j', (redis, env) => {
    expect(() => place(redis, env)).toThrow(/set REDIS_URL or give --redis/);
  });

  it('is a quorum for several URLs, given with commas or one by one', () => {
    const three = ['redis://a', 'redis://b:1', 'rediss://c/2'];
    expect(connection(...three)).toEqual(three);
    expect(connection(three.join(','))).toEqual(three);
    expect(place([], { REDIS_URL: three.join(', ') }).connection).toEqual(three);
  });

  it('is a master behind Sentinels', () => {
    expect(connection('redis+sentinel://me:p%40ss@a,b:1,[::1]:2/main/3?sentinelPassword=s')).toEqual({
      sentinels: [
        { host: 'a', port: 26379 },
        { host: 'b', port: 1 },
        { host: '::1', port: 2 },
      ],
      name: 'main',
      db: 3,
      username: 'me',
      password: 'p@ss',
      sentinelPassword: 's',
    });
    expect(connection('rediss+sentinel://:secret@a/main')).toEqual({
      sentinels: [{ host: 'a', port: 26379 }],
      name: 'main',
      db: 0,
      password: 'secret',
      tls: {},
      sentinelTLS: {},
      enableTLSForSentinelMode: true,
    });
  });

  it('is a cluster', () => {
    const { connection, close } = place(['redis+cluster://me:secret@a,b:7001']);
    expect(connection).toBeInstanceOf(Cluster);
    expect((connection as Cluster).options.redisOptions).toMatchObject({ username: 'me', password: 'secret' });
    close();
  });

  it.each([
    ['127.0.0.1:6379', /starts with redis:/],
    ['http://a', /starts with redis:/],
    ['redis+sentinel://a', /must name the master/],
    ['redis+sentinel://a/main/x', /must name the master/],
    ['redis+sentinel://a:b:c/main', /host:port/],
    ['redis+cluster://a:99999', /host:port/],
    ['redis+cluster://a/1', /only the database 0/],
    ['redis+sentinel://:%ZZ@a/main', /write %25/],
  ])('is refused as %s', (url, why) => {
    expect(() => connection(url)).toThrow(why);
  });

  it('no message shows a password', () => {
    for (const url of ['redis+wrong://:secret@a', 'redis+sentinel://:secret@a', 'secret']) {
      expect(() => connection(url)).toThrow(expect.not.stringContaining('secret'));
    }
  });
});
