import { describe, expect, it } from '@jest/globals';
import { Controller, Get, Res, StreamableFile } from '@nestjs/common';
import { LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import request from 'supertest';
import { until } from '../support/deferred.js';
import { PLATFORMS, startApp } from './http-app.js';

type PlatformResponse = ServerResponse & { readonly raw?: ServerResponse };

const EVENTS = ['close', 'finish'];
const counts: Record<string, number[]> = {};

function count(name: string, response: PlatformResponse): StreamableFile {
  counts[name] = EVENTS.map((event) => (response.raw ?? response).listenerCount(event));
  return new StreamableFile(Readable.from(['file']));
}

@Controller()
class Files {
  @Get('none')
  none(@Res({ passthrough: true }) response: PlatformResponse) {
    return count('none', response);
  }

  @Get('two')
  @WithLock('a', { scope: 'request' })
  @WithLock('b', { scope: 'request' })
  two(@Res({ passthrough: true }) response: PlatformResponse) {
    return count('two', response);
  }
}

describe.each(PLATFORMS)('on %s, a response', (_platform, adapter) => {
  it('a response has one listener of ours for each event, however many locks and waits there are', async () => {
    const app = await startApp(adapter, { imports: [LockTestingModule.forRoot()], controllers: [Files] });
    try {
      const locks = app.get(LockService);
      await request(app.getHttpServer()).get('/none').expect(200);
      const held = await locks.lock('a');
      const answer = request(app.getHttpServer())
        .get('/two')
        .then(({ status }) => status);
      await until(() => locks.isLocked('b'));
      await held.unlock();
      expect(await answer).toBe(200);
      expect(counts['two']).toEqual(counts['none']!.map((listeners) => listeners + 1));
    } finally {
      await app.close();
    }
  });
});
