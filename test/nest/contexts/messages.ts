import { Controller, type INestApplication, type Type, type WebSocketAdapter } from '@nestjs/common';
import { ClientProxyFactory, EventPattern, MessagePattern, Transport } from '@nestjs/microservices';
import { IoAdapter } from '@nestjs/platform-socket.io';
import { WsAdapter } from '@nestjs/platform-ws';
import { Test } from '@nestjs/testing';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { lastValueFrom } from 'rxjs';
import { io } from 'socket.io-client';
import { WebSocket } from 'ws';
import { freePort } from '../../support/free-port.mjs';
import { type Context, type Running, silently, twice } from './context.js';

async function tcp(controller: Type, send: 'send' | 'emit'): Promise<Running> {
  const port = await freePort();
  const module = await Test.createTestingModule({
    imports: [LockTestingModule.forRoot()],
    controllers: [controller],
  }).compile();
  const app = module.createNestMicroservice({
    transport: Transport.TCP,
    options: { host: '127.0.0.1', port },
    logger: false,
  });
  await app.listen();
  const client = ClientProxyFactory.create({ transport: Transport.TCP, options: { host: '127.0.0.1', port } });
  await client.connect();
  const call = () => lastValueFrom(client[send]<unknown>('visit', {}), { defaultValue: undefined });
  return {
    app,
    call: () => (send === 'send' ? twice(call) : silently(() => twice(call))),
    close: () => client.close(),
  };
}

async function startGateway(
  gateway: Type,
  adapter: (app: INestApplication) => WebSocketAdapter,
): Promise<[app: INestApplication, port: number]> {
  const module = await Test.createTestingModule({
    imports: [LockTestingModule.forRoot()],
    providers: [gateway],
  }).compile();
  const app = module.createNestApplication({ logger: false });
  app.useWebSocketAdapter(adapter(app));
  await app.listen(0, '127.0.0.1');
  return [app, (app.getHttpServer() as { address(): AddressInfo }).address().port];
}

/** A client of socket.io that asks twice, on one connection. */
async function socketIo(gateway: Type): Promise<Running> {
  const [app, port] = await startGateway(gateway, (app) => new IoAdapter(app));
  const client = io(`http://127.0.0.1:${port}`, { transports: ['websocket'], reconnection: false });
  await new Promise((resolve, reject) =>
    client.once('connect', () => resolve(undefined)).once('connect_error', reject),
  );
  return {
    app,
    call: () => twice(() => client.emitWithAck('visit', {}) as Promise<unknown>),
    close: () => client.disconnect(),
  };
}

/** A websocket client that asks twice, on one connection. */
async function websocket(gateway: Type): Promise<Running> {
  const [app, port] = await startGateway(gateway, (app) => new WsAdapter(app));
  const client = new WebSocket(`ws://127.0.0.1:${port}`);
  await once(client, 'open');
  const answers: ((answer: unknown) => void)[] = [];
  client.on('message', (data: Buffer) => answers.shift()?.((JSON.parse(data.toString()) as { data: unknown }).data));
  const ask = () =>
    new Promise((resolve) => {
      answers.push(resolve);
      client.send(JSON.stringify({ event: 'visit', data: {} }));
    });
  return { app, call: () => twice(ask), close: () => client.terminate() };
}

export const MESSAGES: Record<string, Context> = {
  '@MessagePattern (TCP)': async (room, locked) => {
    @Controller()
    class Visitors {
      @locked(MessagePattern('visit'))
      async run() {
        return room.visit();
      }
    }
    return tcp(Visitors, 'send');
  },

  '@EventPattern (TCP)': async (room, locked) => {
    @Controller()
    class Visitors {
      @locked(EventPattern('visit') as MethodDecorator)
      async run() {
        return room.visit();
      }
    }
    return tcp(Visitors, 'emit');
  },

  '@SubscribeMessage (socket.io)': async (room, locked) => {
    @WebSocketGateway()
    class Visitors {
      @locked(SubscribeMessage('visit'))
      async run() {
        return room.visit();
      }
    }
    return socketIo(Visitors);
  },

  '@SubscribeMessage (ws)': async (room, locked) => {
    @WebSocketGateway()
    class Visitors {
      @locked(SubscribeMessage('visit'))
      async run() {
        return { event: 'visit', data: await room.visit() };
      }
    }
    return websocket(Visitors);
  },
};
