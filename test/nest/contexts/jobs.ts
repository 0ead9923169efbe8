import { BullModule, InjectQueue, OnWorkerEvent, Processor, WorkerHost } from '@nestjs/bullmq';
import { Injectable, SetMetadata, type Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import type { Queue } from 'bullmq';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { startRedis } from '../../support/redis/redis-server.js';
import { type Context, type Running, silently } from './context.js';

@Injectable()
class Jobs {
  constructor(@InjectQueue('visits') readonly queue: Queue) {}
}

/** Two jobs, for a worker that does two at a time. */
async function worker(processor: Type): Promise<Running> {
  const server = await startRedis();
  const connection = { host: '127.0.0.1', port: server.port };
  const imports = [
    LockTestingModule.forRoot(),
    BullModule.forRoot({ connection }),
    BullModule.registerQueue({ name: 'visits' }),
  ];
  const app = await Test.createTestingModule({ imports, providers: [Jobs, processor] }).compile();
  await app.init();
  const { queue } = app.get(Jobs);
  return {
    app,
    call: () =>
      silently(() =>
        queue.addBulk([
          { name: 'visit', data: 1 },
          { name: 'visit', data: 2 },
        ]),
      ),
    close: () => server.stop(),
  };
}

export const JOBS: Record<string, Context> = {
  'process() of a BullMQ worker': async (room, locked) => {
    @Processor('visits', { concurrency: 2 })
    class Visitors extends WorkerHost {
      @locked(SetMetadata('tag', 'kept'))
      override async process() {
        return room.visit();
      }
    }
    return worker(Visitors);
  },

  '@OnWorkerEvent (BullMQ)': async (room, locked) => {
    @Processor('visits', { concurrency: 2 })
    class Visitors extends WorkerHost {
      override async process() {}

      @locked(OnWorkerEvent('completed'))
      async run() {
        return room.visit();
      }
    }
    return worker(Visitors);
  },
};
