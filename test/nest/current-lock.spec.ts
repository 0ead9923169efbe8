import { afterEach, describe, expect, it } from '@jest/globals';
import { Controller, Get, type INestApplicationContext, Param, Post } from '@nestjs/common';
import { ClientProxyFactory, MessagePattern, Transport } from '@nestjs/microservices';
import { WsAdapter } from '@nestjs/platform-ws';
import { Test } from '@nestjs/testing';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { CurrentLock, type Lock, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { lastValueFrom } from 'rxjs';
import request from 'supertest';
import { WebSocket } from 'ws';
import { freePort } from '../support/free-port.mjs';
import { PLATFORMS, startApp } from './http-app.js';

interface Job {
  readonly id: string;
}

@Controller('jobs')
class Jobs {
  @MessagePattern('close')
  @WithLock('job:<job.id>')
  async close(job: Job, @CurrentLock() lock?: Lock) {
    return { job, key: lock?.key };
  }

  @Get('only')
  @WithLock('job')
  async only(@CurrentLock() lock?: Lock) {
    return { key: lock?.key };
  }

  @Post(':id/first')
  @WithLock('job:<id>')
  async first(@CurrentLock() lock: Lock | undefined, @Param('id') id: string) {
    return { id, key: lock?.key };
  }
}

@WebSocketGateway()
class JobsGateway {
  @SubscribeMessage('close')
  @WithLock('job:<job.id>')
  async close(_client: unknown, job: Job, @CurrentLock() lock?: Lock) {
    return { event: 'close', data: { job, key: lock?.key } };
  }
}

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

function opened<App extends INestApplicationContext>(app: App): App {
  closing.push(() => app.close());
  return app;
}

it('the length of a method leaves out what callers leave out at its end: Bull takes two parameters for a callback', () => {
  const lengths = (['close', 'only', 'first'] as const).map((name) => Jobs.prototype[name].length);
  expect([...lengths, Jobs.prototype.close.bind(new Jobs()).length]).toEqual([1, 0, 2, 1]);
});

const imports = [LockTestingModule.forRoot()];

describe('@CurrentLock()', () => {
  it('@CurrentLock() leaves a message handler its payload', async () => {
    const options = { host: '127.0.0.1', port: await freePort() };
    const module = await Test.createTestingModule({ imports, controllers: [Jobs] }).compile();
    await opened(module.createNestMicroservice({ transport: Transport.TCP, options, logger: false })).listen();
    const client = ClientProxyFactory.create({ transport: Transport.TCP, options });
    closing.push(() => client.close());
    expect(await lastValueFrom(client.send('close', { id: '7' }))).toEqual({ job: { id: '7' }, key: 'job:7' });
  });

  it('@CurrentLock() leaves a gateway its client and payload', async () => {
    const module = await Test.createTestingModule({ imports, providers: [JobsGateway] }).compile();
    const app = opened(module.createNestApplication({ logger: false }));
    app.useWebSocketAdapter(new WsAdapter(app));
    await app.listen(0, '127.0.0.1');
    const { port } = (app.getHttpServer() as { address(): AddressInfo }).address();
    const client = new WebSocket(`ws://127.0.0.1:${port}`);
    closing.push(() => client.terminate());
    await once(client, 'open');
    const answer = once(client, 'message') as Promise<[Buffer]>;
    client.send(JSON.stringify({ event: 'close', data: { id: '7' } }));
    expect(JSON.parse((await answer)[0].toString())).toEqual({
      event: 'close',
      data: { job: { id: '7' }, key: 'job:7' },
    });
  });

  it.each(PLATFORMS)(
    '@CurrentLock() may be the only parameter of a handler, or the first (%s)',
    async (_platform, adapter) => {
      const app = opened(await startApp(adapter, { imports, controllers: [Jobs] }));
      const http = () => request(app.getHttpServer());
      expect((await http().get('/jobs/only')).body).toEqual({ key: 'job' });
      expect((await http().post('/jobs/7/first')).body).toEqual({ id: '7', key: 'job:7' });
    },
  );
});
