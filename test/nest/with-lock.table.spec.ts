import { afterEach, describe, expect, it } from '@jest/globals';
import {
  Controller,
  type INestApplication,
  Injectable,
  Param,
  Post,
  Scope,
  SetMetadata,
  type Type,
  applyDecorators,
} from '@nestjs/common';
import { METHOD_METADATA, PATH_METADATA } from '@nestjs/common/constants.js';
import { Test } from '@nestjs/testing';
import { LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';
import request from 'supertest';

const TAG = 'a custom metadata key';
const INSIDE = { held: true, locked: true };

type Place = 'above' | 'below';
const PLACES = ['above', 'below'] as const satisfies Place[];

/** `@WithLock` and another decorator, in the order they are written. */
function stacked(place: Place, other: MethodDecorator): [MethodDecorator, MethodDecorator] {
  const lock = WithLock('job:<id>') as MethodDecorator;
  return place === 'above' ? [lock, other] : [other, lock];
}

/** What the body of a locked method sees of its lock. */
async function seenInside(locks: LockService, id: string) {
  ran.push(id);
  const key = `job:${id}`;
  return { held: locks.current(key)?.isHeld, locked: await locks.isLocked(key) };
}

let app: INestApplication | undefined;
const ran: string[] = [];

afterEach(async () => {
  ran.length = 0;
  await app?.close();
  app = undefined;
});

async function start(types: { providers?: Type[]; controllers?: Type[] }): Promise<INestApplication> {
  const module = await Test.createTestingModule({
    imports: [LockTestingModule.forRoot({ wait: 0 })],
    ...types,
  }).compile();
  app = module.createNestApplication({ logger: false });
  return app.init();
}

const SCOPES = [
  ['a service', Scope.DEFAULT],
  ['a request-scoped service', Scope.REQUEST],
  ['a transient service', Scope.TRANSIENT],
] as const;

describe.each(SCOPES.flatMap(([kind, scope]) => PLACES.map((place) => ({ kind, scope, place }))))(
  '@WithLock on $kind, $place another decorator',
  ({ scope, place }) => {
    const [outer, inner] = stacked(place, SetMetadata(TAG, 'kept'));

    @Injectable({ scope })
    class Jobs {
      constructor(private readonly locks: LockService) {}

      @outer
      @inner
      async run(id: string, _note = '') {
        return seenInside(this.locks, id);
      }
    }

    it('@WithLock runs the body with the lock held, and frees it after', async () => {
      const app = await start({ providers: [Jobs] });
      const jobs = await app.resolve(Jobs);
      expect(await jobs.run('7')).toEqual(INSIDE);
      expect(await app.get(LockService).isLocked('job:7')).toBe(false);
    });

    it('@WithLock never runs the body when the lock is not free', async () => {
      const app = await start({ providers: [Jobs] });
      const jobs = await app.resolve(Jobs);
      await using held = await app.get(LockService).lock('job:7');

      await expect(jobs.run('7')).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
      expect(await jobs.run('8')).toEqual(INSIDE);
      expect(ran).toEqual(['8']);
      held.assertHeld();
    });

    it('@WithLock keeps the metadata, the name and the length of the method', () => {
      const method = Object.getOwnPropertyDescriptor(Jobs.prototype, 'run')!.value as () => unknown;
      expect(Reflect.getMetadata(TAG, method)).toBe('kept');
      expect(method.name).toBe('run');
      expect(method).toHaveLength(1);
    });
  },
);

const CONTROLLERS = [
  ['a controller', Scope.DEFAULT],
  ['a request-scoped controller', Scope.REQUEST],
] as const;

describe.each(CONTROLLERS.flatMap(([kind, scope]) => PLACES.map((place) => ({ kind, scope, place }))))(
  '@WithLock on $kind, $place @Post',
  ({ scope, place }) => {
    const [outer, inner] = stacked(place, applyDecorators(Post(':id'), SetMetadata(TAG, 'kept')));

    @Controller({ path: 'jobs', scope })
    class JobsController {
      constructor(private readonly locks: LockService) {}

      @outer
      @inner
      async run(@Param('id') id: string) {
        return seenInside(this.locks, id);
      }
    }

    it('@WithLock leaves the route registered, and its handler runs with the lock held', async () => {
      const app = await start({ controllers: [JobsController] });
      await request(app.getHttpServer()).post('/jobs/7').expect(201, INSIDE);
      expect(await app.get(LockService).isLocked('job:7')).toBe(false);
    });

    it('@WithLock never runs the handler when the lock is not free', async () => {
      const app = await start({ controllers: [JobsController] });
      await using held = await app.get(LockService).lock('job:7');

      await request(app.getHttpServer()).post('/jobs/7').expect(409);
      await request(app.getHttpServer()).post('/jobs/8').expect(201, INSIDE);
      expect(ran).toEqual(['8']);
      held.assertHeld();
    });

    it('@WithLock keeps the metadata, the name and the length of the handler', () => {
      const method = Object.getOwnPropertyDescriptor(JobsController.prototype, 'run')!.value as () => unknown;
      expect(Reflect.getMetadataKeys(method)).toEqual(expect.arrayContaining([TAG, PATH_METADATA, METHOD_METADATA]));
      expect(method.name).toBe('run');
      expect(method).toHaveLength(1);
    });
  },
);
