import { LockError } from './lock.error.js';

/**
 * Thrown when a `@WithLock` method is called on an object that Nest did not build and was not given. The body does not
 * run.
 */
export class LockNotWiredError extends LockError {
  declare readonly code: 'LOCK_NOT_WIRED';

  constructor(method: string, moduleName: string) {
    const module = moduleName === 'default' ? 'RedisLockModule' : `the RedisLockModule named "${moduleName}"`;
    const message =
      `${method}() needs a lock, but this object has no LockService, so the method did not run. ` +
      'Potential solutions: if it was called in a constructor, where it has none yet, ' +
      'call it in onModuleInit() or later (of what a factory made: in onApplicationBootstrap()); ' +
      'if the class uses forwardRef(), make arrow functions, bound methods and listeners in onModuleInit(), ' +
      'because Nest throws away the object that its constructor has seen; ' +
      'let Nest build the object, instead of calling "new" yourself; ' +
      `or give it to Nest (useValue, useFactory); import ${module} in the app; ` +
      "don't freeze the object in its constructor; " +
      'in a unit test import LockTestingModule.forRoot() from "nest-redis-lock/testing", ' +
      'and call "await module.init()", which wires what the test gives to Nest.';
    super('LockNotWiredError', message, {
      code: 'LOCK_NOT_WIRED',
      status: 500,
      detail: message,
      clientMessage: 'Internal server error',
    });
  }
}
