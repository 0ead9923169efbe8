import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { LockService, RedisLockModule } from 'nest-redis-lock';

/** Boots a Nest app around the built package, and what else is imported, and returns it with its LockService. */
export async function boot(options, imports = []) {
  class TestApp {}
  const app = await NestFactory.createApplicationContext(
    { module: TestApp, imports: [RedisLockModule.forRoot(options), ...imports] },
    { logger: ['error'] },
  );
  return { app, locks: app.get(LockService) };
}

/** The same clock in every process of this machine, in ms. */
export const clock = () => Number(process.hrtime.bigint()) / 1e6;

/** Ends with the parent, however that ends. */
process.on('disconnect', () => process.exit());
