import type { INestApplication, ModuleMetadata } from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';

export type NewAdapter = () => AbstractHttpAdapter;

/** The two platforms, for `describe.each`. */
export const PLATFORMS: [name: string, adapter: NewAdapter][] = [
  ['Express', () => new ExpressAdapter()],
  ['Fastify', () => new FastifyAdapter()],
];

/** Builds an app that listens on a free port. `setUp` runs before it starts. */
export async function startApp(
  adapter: NewAdapter,
  metadata: ModuleMetadata,
  setUp?: (app: INestApplication) => void,
): Promise<INestApplication> {
  const module = await Test.createTestingModule(metadata).compile();
  const app = module.createNestApplication(adapter(), { logger: false });
  setUp?.(app);
  await app.listen(0, '127.0.0.1');
  return app;
}
