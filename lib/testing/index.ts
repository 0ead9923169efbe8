export { MemoryLockStore } from '../store/memory-lock.store.js';
export { LockTestingModule, type LockTestingModuleOptions } from './lock-testing.module.js';
