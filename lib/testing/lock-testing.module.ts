import type { DynamicModule } from '@nestjs/common';
import { RedisLockModule } from '../redis-lock.module.js';
import type { RedisLockModuleOptions } from '../redis-lock.options.js';
import { MemoryLockStore } from '../store/memory-lock.store.js';

/** What `RedisLockModule` can be told, but for where Redis is. */
export type LockTestingModuleOptions = Omit<RedisLockModuleOptions, 'connection'>;

/**
 * `RedisLockModule` for unit tests: the same locks, with the same rules, in memory. They really exclude.
 *
 * @example
 * ```ts
 * Test.createTestingModule({ imports: [LockTestingModule.forRoot()], providers: [AccountService] });
 * ```
 */
export class LockTestingModule {
  /** @param options the `store` defaults to a new `MemoryLockStore` */
  static forRoot(options: LockTestingModuleOptions = {}): DynamicModule {
    return RedisLockModule.forRoot({ ...options, store: options.store ?? new MemoryLockStore() });
  }
}
