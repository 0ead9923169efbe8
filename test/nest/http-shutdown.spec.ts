import { describe, expect, it } from '@jest/globals';
import { Controller, Post } from '@nestjs/common';
import { LockService, LockUnavailableError, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import request from 'supertest';
import { deferred, until } from '../support/deferred.js';
import { PLATFORMS, startApp } from './http-app.js';

describe.each(PLATFORMS)('on %s, while the app shuts down,', (_platform, adapter) => {
  it('a handler that runs keeps its lock to its end; who waits and who comes now is refused', async () => {
    const [inside, goOn] = [deferred(), deferred()];

    @Controller('jobs')
    class JobsController {
      constructor(private readonly locks: LockService) {}

      @Post()
      @WithLock('job')
      async run() {
        inside.resolve();
        await goOn.promise;
        return { held: this.locks.current('job')?.isHeld };
      }
    }

    const app = await startApp(adapter, { imports: [LockTestingModule.forRoot()], controllers: [JobsController] });
    const locks = app.get(LockService);
    const answer = request(app.getHttpServer()).post('/jobs').then(({ status, body }) => ({ status, body }));
    await inside.promise;
    const waiting = locks.lock('job').catch((error: unknown) => error);

    const closing = app.close();
    expect(await waiting).toBeInstanceOf(LockUnavailableError);
    await until(() => locks.withLock('other', () => false).catch((error: unknown) => error instanceof LockUnavailableError));
    goOn.resolve();
    expect(await answer).toEqual({ status: 201, body: { held: true } });
    await closing;
  });
});
