export { LockPageModule } from './lock-page.module.js';
export type { LockPageGuard, LockPageModuleOptions } from './lock-page.options.js';
