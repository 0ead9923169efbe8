import type { DynamicModule } from '@nestjs/common';
import { DEFAULT_MODULE, lockServiceToken, moduleNameIn } from '../service/lock.tokens.js';
import { RedisLockModule } from '../module/redis-lock.module.js';
import { MemoryLockStore } from '../store/memory/memory-lock.store.js';
import { inMemory, type LockTestingModuleOptions, TestLockService } from './test-lock.service.js';

/**
 * Replaces `RedisLockModule` in unit tests: the same locks, with the same rules, in memory. They exclude each other.
 * Its `LockService` is a `TestLockService`, which can also simulate that a key is busy.
 *
 * @example
 * ```ts
 * Test.createTestingModule({ imports: [LockTestingModule.forRoot()], providers: [AccountService] });
 * ```
 */
export class LockTestingModule {
  /**
   * @param options the `store` defaults to a new `MemoryLockStore`
   * @throws LockOptionsError for an unknown option or a bad value
   */
  static forRoot(options: LockTestingModuleOptions = {}): DynamicModule {
    const given = inMemory(options);
    const name = moduleNameIn(given, 'name');
    const token = lockServiceToken(name);
    const {
      providers = [],
      exports = [],
      ...definition
    } = RedisLockModule.forRoot({ ...given, store: given.store === undefined ? new MemoryLockStore() : given.store });
    const alias = name === DEFAULT_MODULE ? [{ provide: TestLockService, useExisting: token }] : [];
    return {
      ...definition,
      module: LockTestingModule,
      providers: [...providers, { provide: token, useFactory: () => new TestLockService(given) }, ...alias],
      exports: [...exports, ...alias],
    };
  }
}
