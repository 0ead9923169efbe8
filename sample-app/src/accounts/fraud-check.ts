import { Injectable } from '@nestjs/common';
import { setTimeout } from 'node:timers/promises';
import type { Account } from './account.js';

/** Simulates a service that is called over the network, and takes its time while others read the same balance. */
@Injectable()
export class FraudCheck {
  async approve(_account: Account, _change: number): Promise<void> {
    await setTimeout(2);
  }
}
