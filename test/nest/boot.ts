import type { Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { LockTestingModule } from 'nest-redis-lock/testing';

/** Starts an app with these classes, and ends it. Rejects with what the app does not start with. */
export async function boot(...providers: Type[]): Promise<void> {
  const module = await Test.createTestingModule({ imports: [LockTestingModule.forRoot()], providers }).compile();
  try {
    await module.init();
  } finally {
    await module.close();
  }
}
