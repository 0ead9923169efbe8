// Locks with `scope: 'request'` where no server answers: behind a serverless adapter and in `app.inject()`; and where a
// client cancels, over HTTP/2.
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { connect, constants } from 'node:http2';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { Controller, Get, type INestApplication, Module, Query, StreamableFile } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { LockService, type LockTimeoutError, RedisLockModule, WithLock } from 'nest-redis-lock';

type Handler = (event: object, context: object) => Promise<Answer>;

interface Answer {
  readonly statusCode: number;
  readonly body: string;
}

const KEY = 'report:7';
const ran: (string | undefined)[] = [];
const doors = new EventEmitter();

@Controller('reports/:id')
class Reports {
  @Get('json')
  @WithLock('report:<params.id>', { scope: 'request' })
  async json(@Query('client') client?: string): Promise<object> {
    ran.push(client);
    if (client === 'slow') {
      doors.emit('inside');
      await once(doors, 'leave');
    }
    return { id: 7 };
  }

  @Get('file')
  @WithLock('report:<params.id>', { scope: 'request' })
  file(): StreamableFile {
    return new StreamableFile(Buffer.from('seven'));
  }
}

@Module({
  imports: [RedisLockModule.forRoot({ connection: process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379', wait: '5s' })],
  controllers: [Reports],
})
class ReportModule {}

/** Twice the same: the second gets in only if the first has given the lock back. */
async function answersTwice(app: INestApplication, get: (path: string) => Promise<Answer>): Promise<void> {
  for (const [path, body] of [
    ['json', '{"id":7}'],
    ['json', '{"id":7}'],
    ['file', 'seven'],
    ['file', 'seven'],
  ]) {
    const answer = await get(`/reports/7/${path}`);
    assert.deepEqual([answer.statusCode, answer.body], [200, body]);
  }
  await (await app.get(LockService).lock(KEY)).unlock();
  await app.close();
}

async function serverless(): Promise<void> {
  // Its types want those of AWS.
  const adapter = createRequire(join(process.cwd(), 'main.js'))('@codegenie/serverless-express') as (
    options: object,
  ) => Handler;
  const app = await NestFactory.create(ReportModule, { logger: ['error'] });
  await app.init();
  const handler = adapter({ app: app.getHttpAdapter().getInstance() as object });
  await answersTwice(app, (path) => {
    const requestContext = { http: { method: 'GET', path, sourceIp: '127.0.0.1' } };
    return handler({ version: '2.0', rawPath: path, rawQueryString: '', headers: {}, requestContext }, {});
  });
}

async function injected(): Promise<void> {
  const app = await NestFactory.create<NestFastifyApplication>(ReportModule, new FastifyAdapter(), {
    logger: ['error'],
  });
  await app.init();
  await answersTwice(app, (url) => app.inject({ method: 'GET', url }));
}

/**
 * A client that cancels while it waits does not get in; where one cancels while it is inside, the lock is back when its
 * handler has ended.
 */
async function cancelled(): Promise<void> {
  const app = await NestFactory.create<NestFastifyApplication>(ReportModule, new FastifyAdapter({ http2: true }), {
    logger: ['error'],
  });
  await app.listen(0, '127.0.0.1');
  const locks = app.get(LockService);
  const session = connect(await app.getUrl());
  const get = (client: string) =>
    session.request({ ':path': `/reports/7/json?client=${client}` }).on('error', () => undefined);
  const refusal = () =>
    locks.lock(KEY, { maxWaiters: 1, wait: 1 }).then(
      () => 'none',
      ({ reason }: LockTimeoutError) => reason,
    );
  const until = async (reason: string) => {
    while ((await refusal()) !== reason) await setTimeout(5);
  };

  const inside = once(doors, 'inside');
  const slow = get('slow');
  await inside;
  const waiting = get('waiting');
  await until('too-many-waiters');
  waiting.close(constants.NGHTTP2_CANCEL);
  await until('held');
  slow.close(constants.NGHTTP2_CANCEL);
  doors.emit('leave');
  await (await locks.lock(KEY)).unlock();
  assert.deepEqual(ran.filter(Boolean), ['slow']);
  session.close();
  await app.close();
}

export async function requestScope(): Promise<void> {
  await serverless();
  await injected();
  await cancelled();
}
