import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { INestApplication, ModuleMetadata } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { LockService } from 'nest-redis-lock';
import { LockPageModule, type LockPageModuleOptions } from 'nest-redis-lock/page';
import { LockTestingModule } from 'nest-redis-lock/testing';
import { PageAssets } from '../../../lib/page/http/page-assets.js';
import { LockPage } from '../../../lib/page/lock-page.js';
import type { PageTimes } from '../../../lib/page/page-times.js';
import type { NewAdapter } from '../../nest/http-app.js';

/** The files of a page, instead of those that the build writes. */
export function somePageAssets(): PageAssets {
  const folder = mkdtempSync(join(tmpdir(), 'lock-page-'));
  writeFileSync(
    join(folder, 'index.html'),
    '<link href="{{base}}assets/page.css"><script src="{{base}}assets/page.js">',
  );
  writeFileSync(join(folder, 'page.js'), 'export {};');
  writeFileSync(join(folder, 'secret.pem'), 'a file of a type that no page has');
  try {
    return new PageAssets(pathToFileURL(`${folder}/`));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The files that the build has written. */
export function builtPageAssets(): PageAssets {
  return new PageAssets(new URL('../../../dist/page/assets/', import.meta.url));
}

interface PageApp {
  readonly adapter: NewAdapter;
  readonly page?: LockPageModuleOptions;
  /** What the app has besides. @default locks in memory */
  readonly metadata?: ModuleMetadata;
  /** @default those of every app */
  readonly times?: Partial<PageTimes>;
  /** @default somePageAssets() */
  readonly assets?: PageAssets;
  readonly setUp?: (app: INestApplication) => void;
}

/** Starts an app with a page, on a free port. */
export async function startPageApp({
  adapter,
  page,
  metadata,
  assets,
  setUp,
  times,
}: PageApp): Promise<INestApplication> {
  const { imports = [LockTestingModule.forRoot({ shutdownGrace: 0 })], ...rest } = metadata ?? {};
  const module = await Test.createTestingModule({ imports: [...imports, LockPageModule.forRoot(page)], ...rest })
    .overrideProvider(PageAssets)
    .useValue(assets ?? somePageAssets())
    .overrideProvider(LockPage)
    .useFactory({ factory: (locks: LockService) => new LockPage(locks, !!page?.actions, times), inject: [LockService] })
    .compile();
  const app = module.createNestApplication(adapter(), { logger: false });
  setUp?.(app);
  await app.listen(0, '127.0.0.1');
  return app;
}
