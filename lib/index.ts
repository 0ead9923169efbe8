export { RedisLockModule } from './module/redis-lock.module.js';
export type {
  RedisLockModuleExtras,
  RedisLockModuleOptions,
  RedisLockOptions,
  RedisLockOptionsFactory,
} from './module/redis-lock.options.js';
export { LockService } from './service/lock.service.js';
export { lockServiceToken as getLockServiceToken } from './service/lock.tokens.js';
export type { LockedMethodInfo } from './service/locked-method-info.js';
export { WithLock } from './decorators/with-lock.decorator.js';
export type { WithLockDecorator } from './decorators/options/with-lock.types.js';
export type { LockTimeoutContext } from './decorators/options/timeout-types.js';
export type { RequestLockOptions, WithLockDecoratorOptions } from './decorators/options/with-lock.options.js';
export { lockKey } from './decorators/key/key-tag.js';
export type { LockKeyValues } from './decorators/key/key-tag.js';
export { InjectLocks } from './decorators/inject-locks.decorator.js';
export { CurrentLock } from './decorators/current-lock.decorator.js';
export { LockExceptionFilter } from './http/lock-exception.filter.js';
export type { LockExceptionFactory } from './http/exception-factory.js';
export { LockInterceptor } from './http/lock.interceptor.js';

export { Lock } from './core/lock/lock.js';
export type { LockKey } from './core/request/lock-key.js';
export type { HeldMode, SharedMode } from './core/request/held-mode.js';
export type { HeldLockEvent, LockCallEvent, LockEvent } from './core/lock/lock-event.js';
export type { LockHolder, LockInfo, LockWaiter } from './core/lock-info.js';
export type { ListedHolder, ListedLock, ListedWaiters, ListOptions, LockList } from './core/lock-list.js';
export type { LockMode, LockOptions, WithLockOptions } from './core/request/lock-options.js';
export type { Duration } from './clock/duration.js';
export type {
  AcquireCommand,
  Cancellation,
  ForcedUnlock,
  ForceUnlockOptions,
  FoundProcesses,
  Granted,
  Busy,
  HolderView,
  KeyView,
  LockDetails,
  LockStore,
  OwnedLock,
  ProcessQuestion,
  ProcessReply,
  RenewalOutcome,
  Sharing,
  StoreListener,
  Unreached,
  UnreachedReason,
  WaiterView,
} from './store/lock-store.js';
export type { RedisConnectionOption, RedisConnectionsOption } from './redis/connection/connection-option.js';

export { isLockError, LockError } from './errors/lock.error.js';
export type { LockErrorBody, LockErrorCode } from './errors/lock.error.js';
export { LockTimeoutError } from './errors/lock-timeout.error.js';
export type { TimeoutReason } from './errors/lock-timeout.error.js';
export { LockUnavailableError } from './errors/lock-unavailable.error.js';
export { LockLostError } from './errors/lock-lost.error.js';
export type { LostReason } from './errors/lock-lost.error.js';
export { LockKeyError } from './errors/lock-key.error.js';
export { LockOptionsError } from './errors/lock-options.error.js';
export { LockNotWiredError } from './errors/lock-not-wired.error.js';
