import { afterEach, expect, it } from '@jest/globals';
import { Controller, Get, type INestApplication, Res } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import { until } from '../support/deferred.js';
import { startApp } from './http-app.js';

const KEY = 'report:7';
let app: INestApplication;

/** On HTTP/1, Node leaves the name `stream` to the app. */
type Response = ServerResponse & { stream?: unknown };

@Controller()
class Reports {
  @Get('whole')
  @WithLock(KEY, { scope: 'request' })
  async whole() {
    return 'the report';
  }

  @Get('streamed')
  @WithLock(KEY, { scope: 'request' })
  streamed(@Res() { stream }: Response) {
    (stream as PassThrough).end('the report');
  }
}

async function start(setUp: (response: Response) => void): Promise<string> {
  app = await startApp(
    () => new ExpressAdapter(),
    { imports: [LockTestingModule.forRoot()], controllers: [Reports] },
    (started) =>
      started.use((_request: unknown, response: Response, next: () => void) => {
        setUp(response);
        next();
      }),
  );
  return app.getUrl();
}

afterEach(() => app.close());

it.each([true, {}, () => undefined])(
  'a request has its response where the app sets response.stream to %p',
  async (own) => {
    const url = await start((response) => (response.stream = own));
    const response = await fetch(`${url}/whole`);
    expect([response.status, await response.text()]).toEqual([200, 'the report']);
  },
);

it('a lock lasts until the response has been sent, although a stream that the app keeps there has closed', async () => {
  const [own, rest] = [new PassThrough(), new PassThrough()];
  let sent: Response | undefined;
  const url = await start((response) => {
    response.stream = own.on('data', (chunk) => rest.write(chunk)).on('end', () => rest.end());
    sent = response;
  });
  const response = fetch(`${url}/streamed`);
  await once(own, 'close');

  const locks = app.get(LockService);
  expect(await locks.isLocked(KEY)).toBe(true);
  rest.pipe(sent!);
  expect(await (await response).text()).toBe('the report');
  await until(async () => !(await locks.isLocked(KEY)));
});
