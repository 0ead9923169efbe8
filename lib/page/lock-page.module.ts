import { type DynamicModule, Inject, Module, Optional } from '@nestjs/common';
import { LockOptionsError } from '../errors/lock-options.error.js';
import type { LockService } from '../service/lock.service.js';
import { lockServiceToken } from '../service/lock.tokens.js';
import { pageController } from './http/lock-page.controller.js';
import { PageAssets } from './http/page-assets.js';
import { LockPage } from './lock-page.js';
import { type LockPageModuleOptions, resolvePageOptions } from './lock-page.options.js';

/**
 * Adds a page to the app that shows its locks live, over all its processes: who holds and who waits, how long that
 * takes, what was lost. Import it in every process, so that the page knows them all.
 *
 * @example
 * ```ts
 * @Module({ imports: [RedisLockModule.forRoot(), LockPageModule.forRoot({ guards: [AdminGuard] })] })
 * export class AppModule {}
 * ```
 */
@Module({})
export class LockPageModule {
  /** @throws LockOptionsError when it is imported without `forRoot()`: it would have no page */
  constructor(@Optional() @Inject(LockPage) page?: LockPage) {
    if (!page)
      throw new LockOptionsError(
        'LockPageModule has no page of its own. ' +
          'Import LockPageModule.forRoot({ guards: [AdminGuard] }), with a guard of your app.',
      );
  }

  /** @throws LockOptionsError for an unknown option or a bad value, and when nobody guards the page */
  static forRoot(options: LockPageModuleOptions = {}): DynamicModule {
    const resolved = resolvePageOptions(options, process.env['NODE_ENV']);
    return {
      module: LockPageModule,
      imports: [...resolved.imports],
      controllers: [pageController(resolved)],
      providers: [
        { provide: PageAssets, useFactory: () => new PageAssets() },
        {
          provide: LockPage,
          useFactory: (locks: LockService) => new LockPage(locks, resolved.actions),
          inject: [lockServiceToken(resolved.module)],
        },
      ],
    };
  }
}
