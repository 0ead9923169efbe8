import { BadRequestException, Inject, Injectable } from '@nestjs/common';
import { appConfig, type AppConfig } from '../config/app.config.js';
import type { UnsafeQuery } from './unsafe.query.js';

/** Decides whether a request may leave out the lock, to show what goes wrong then. */
@Injectable()
export class UnsafeDemo {
  constructor(@Inject(appConfig.KEY) private readonly config: AppConfig) {}

  /** @throws BadRequestException when the request asks for it, but the app does not allow it */
  isAskedFor({ unsafe }: UnsafeQuery): boolean {
    if (unsafe !== 'true') return false;
    if (this.config.demoUnsafe) return true;
    throw new BadRequestException([
      'unsafe=true leaves out the lock, which does damage. To see it do so, start the app with DEMO_UNSAFE=1',
    ]);
  }
}
