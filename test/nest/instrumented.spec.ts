import { afterEach, expect, it } from '@jest/globals';
import { type INestApplicationContext, Injectable, Module, type Provider, type Type } from '@nestjs/common';
import { LazyModuleLoader, NestFactory } from '@nestjs/core';
import { LockOptionsError, LockService, WithLock } from 'nest-redis-lock';
import { LockTestingModule } from 'nest-redis-lock/testing';

@Injectable()
class Jobs {
  @WithLock('job:<id>')
  async run(id: string) {
    return id;
  }
}

@Injectable()
class Overriding extends Jobs {
  override async run(id: string) {
    return `${id} without a lock`;
  }
}

/** As a tool for tracing does: puts a Proxy before each object, and calls the methods of the object itself. */
function traced(instance: unknown): unknown {
  if (typeof instance !== 'object' || instance === null) return instance;
  return new Proxy(instance, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' && name !== 'constructor' ? (value.bind(target) as unknown) : value;
    },
  });
}

const apps: INestApplicationContext[] = [];

afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

async function start(...providers: Provider[]): Promise<INestApplicationContext> {
  @Module({
    imports: [LockTestingModule.forRoot(), LockTestingModule.forRoot({ name: 'billing' })],
    providers,
  })
  class App {}
  const options = { logger: false, abortOnError: false, instrument: { instanceDecorator: traced } } as const;
  const app = await NestFactory.createApplicationContext(App, options);
  apps.push(app);
  return app;
}

function lazy(type: Type): Type {
  @Module({ providers: [type] })
  class Lazy {}
  return Lazy;
}

it('an app whose objects are all behind Proxies does not start with a lock that would not hold', async () => {
  await expect(start(Overriding)).rejects.toThrow(LockOptionsError);
});

it('nor does it load a lazy module with one', async () => {
  const app = await start(Jobs);
  await expect(app.get(LazyModuleLoader).load(() => lazy(Overriding))).rejects.toThrow(LockOptionsError);
});

it('its locks work on every object that Nest knows', async () => {
  const app = await start(
    Jobs,
    { provide: 'made', useFactory: () => new Jobs() },
    { provide: 'given', useValue: new Jobs() },
  );
  const objects = [app.get(Jobs), app.get<Jobs>('made'), app.get<Jobs>('given')];
  expect(await Promise.all(objects.map((jobs, index) => jobs.run(`${index}`)))).toEqual(['0', '1', '2']);
  expect(
    app
      .get(LockService)
      .methods()
      .map(({ method }) => method),
  ).toEqual(['run']);
});
