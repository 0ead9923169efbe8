export { MemoryLockStore } from '../store/memory/memory-lock.store.js';
export { LockTestingModule } from './lock-testing.module.js';
export type { LockSituation } from './simulated-lock.store.js';
export { TestLockService, type LockTestingModuleOptions } from './test-lock.service.js';
