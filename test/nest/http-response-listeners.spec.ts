import { describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, Res, StreamableFile } from '@nestjs/common';
import { LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { type IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import request from 'supertest';
import { onceEnded } from '../../lib/http/response-end.js';
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

describe('The end of a response of a serverless adapter', () => {
  const responseTo = (socket?: object) => new ServerResponse({ method: 'GET', socket } as unknown as IncomingMessage);

  it('is heard when its socket is an emitter without off()', () => {
    const socket = { on: () => socket, removeListener: () => socket };
    const response = responseTo(socket);
    const heard = jest.fn();
    onceEnded(response, heard);
    response.emit('finish');
    expect(heard).toHaveBeenCalledTimes(1);
  });

  it('is heard when it has no socket, and its end() emits nothing', () => {
    const response = Object.assign(responseTo(), { end: () => undefined }) as unknown as ServerResponse;
    const heard = jest.fn();
    onceEnded(response, heard);
    response.end('all of it');
    expect(heard).toHaveBeenCalledTimes(1);
  });
});
