import { Inject, Injectable } from '@nestjs/common';
import { setTimeout } from 'node:timers/promises';
import { appConfig, type AppConfig } from '../config/app.config.js';
import type { Account } from './account.js';

/** Simulates a service that is called over the network, and takes its time while others read the same balance. */
@Injectable()
export class FraudCheck {
  constructor(@Inject(appConfig.KEY) private readonly config: Pick<AppConfig, 'fraudCheckMs'>) {}

  async approve(_account: Account, _change: number): Promise<void> {
    await setTimeout(this.config.fraudCheckMs);
  }
}
