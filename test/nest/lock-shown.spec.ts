import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, type INestApplication, UseInterceptors, ClassSerializerInterceptor } from '@nestjs/common';
import { CurrentLock, type Lock, LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { inspect } from 'node:util';
import { PLATFORMS, startApp } from './http-app.js';

let token: string | undefined;

@Controller()
class Accounts {
  @Get('plain')
  @WithLock('account:jane@example.com')
  async plain(@CurrentLock() lock?: Lock) {
    token = lock?.token;
    return lock;
  }

  @Get('within')
  @WithLock('account:jane@example.com')
  async within(@CurrentLock() lock?: Lock) {
    token = lock?.token;
    return { data: { lock } };
  }

  @Get('serialized')
  @UseInterceptors(ClassSerializerInterceptor)
  @WithLock('account:jane@example.com')
  async serialized(@CurrentLock() lock?: Lock) {
    token = lock?.token;
    return lock;
  }
}

describe.each(PLATFORMS)('on %s, a handler that returns its lock', (_platform, adapter) => {
  let app: INestApplication;

  beforeEach(async () => {
    app = await startApp(adapter, { imports: [LockTestingModule.forRoot()], controllers: [Accounts] });
  });

  afterEach(() => app.close());

  it.each(['plain', 'within', 'serialized'])('a lock in a response hides its token and its key (%s)', async (path) => {
    const answer = await fetch(`${await app.getUrl()}/${path}`);
    const body = await answer.text();
    expect(answer.status).toBe(200);
    expect(body).toContain('fence');
    expect(body).not.toContain('jane');
    expect(token).toEqual(expect.any(String));
    expect(body).not.toContain(token);
  });

  it('a lock tells a log its key, and not its token, also where another lock is nested in it', async () => {
    const locks = app.get(LockService);
    await locks.withLock('account:42', (outer) =>
      locks.withLock('account:42', (lock) => {
        for (const text of [
          inspect(outer),
          inspect(lock),
          inspect({ deep: [{ lock }] }, { depth: 9, showHidden: true }),
          JSON.stringify(lock),
        ]) {
          expect(text).not.toContain(lock.token);
        }
        const { fence } = lock;
        expect(inspect(lock)).toMatch(
          /^Lock \{\s+keys: \[ 'account:42' \],\s+mode: 'exclusive',\s+fence: \d+,\s+acquiredAt: .*,\s+isHeld: true\s+\}$/,
        );
        expect(JSON.parse(JSON.stringify(lock))).toEqual({
          mode: 'exclusive',
          fence,
          acquiredAt: lock.acquiredAt.toISOString(),
          isHeld: true,
        });
      }),
    );
  });
});
