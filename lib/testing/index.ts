export { MemoryLockStore } from '../store/memory-lock.store.js';
export { LockTestingModule } from './lock-testing.module.js';
