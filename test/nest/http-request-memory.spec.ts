import { afterEach, describe, it } from '@jest/globals';
import { Body, Controller, type INestApplication, Post } from '@nestjs/common';
import { WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import request from 'supertest';
import { until } from '../support/deferred.js';
import { PLATFORMS, startApp } from './http-app.js';
import { collectGarbage } from '../support/collect-garbage.js';

/** What the handlers start, which lives longer than their requests. */
const timers: NodeJS.Timeout[] = [];
let body: WeakRef<object> | undefined;

function startTimer(given: object): void {
  body = new WeakRef(given);
  timers.push(setTimeout(() => undefined, 3_600_000));
}

@Controller()
class Uploads {
  @Post('plain')
  plain(@Body() given: object) {
    startTimer(given);
  }

  @Post('locked')
  @WithLock('upload', { scope: 'request' })
  async locked(@Body() given: object) {
    startTimer(given);
  }
}

describe.each(PLATFORMS)('on %s, a request', (_platform, adapter) => {
  let app: INestApplication;

  afterEach(async () => {
    for (const timer of timers.splice(0)) clearTimeout(timer);
    await app.close();
  });

  it.each(['plain', 'locked'])('is not kept by a timer that it has started (%s)', async (path) => {
    app = await startApp(adapter, { imports: [LockTestingModule.forRoot()], controllers: [Uploads] });
    await request(app.getHttpServer()).post(`/${path}`).send({ a: 1 }).expect(201);
    await until(() => {
      collectGarbage();
      return body?.deref() === undefined;
    });
  });
});
